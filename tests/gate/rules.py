"""All rules: importing their modules registers them."""

from __future__ import annotations

from typing import Final

from tests.gate import function_rules, http_rules, mapping_rules, name_rules, observation_rules, queue_rules, rule

MODULES: Final = (function_rules, http_rules, mapping_rules, name_rules, observation_rules, queue_rules)
RULES: Final = rule.RULES

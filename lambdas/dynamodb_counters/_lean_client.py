"""botocore's client, made without what other services need: in a fifth of the CPU time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from botocore.config import Config
from botocore.credentials import CredentialResolver, EnvProvider
from botocore.handlers import BUILTIN_HANDLERS, REGISTER_FIRST, REGISTER_LAST
from botocore.loaders import Loader
from botocore.session import Session, get_session


class _Loader(Loader):
    """Loads the model of one service without a look at the others."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def list_available_services(self, _type_name: str) -> list[str]:
        # Or else three calls of the file system for each of 400 services.
        return [self._service]

    def load_data_with_path(self, name: str) -> tuple[Any, str]:
        if name != "endpoints":
            return super().load_data_with_path(name)
        # The file of that name is 1.2 MB of hosts, in place of which botocore uses those of the service's own rules.
        partitions, path = super().load_data_with_path("partitions")
        return {"version": 3, "partitions": [_regions(partition) for partition in partitions["partitions"]]}, path


def _regions(partition: Mapping[str, Any]) -> dict[str, Any]:
    hosts = {"hostname": "{service}.{region}.{dnsSuffix}", "protocols": ["https"], "signatureVersions": ["v4"]}
    names = {"partition": partition["id"], "regionRegex": partition["regionRegex"], "regions": partition["regions"]}
    return {**names, "dnsSuffix": partition["outputs"]["dnsSuffix"], "defaults": hosts, "services": {}}


SERVICES: Final = ("dynamodb", "sqs")
"""Whose hosts and signatures depend on region and partition alone, as `tests/unit/test_lean_client.py` compares."""


def create_client(service: str, config: Config) -> Any:
    """Create the client that a new session of botocore would create."""
    session = Session(include_builtin_handlers=False)
    if session.get_config_variable("data_path") or os.path.isdir(Loader.CUSTOMER_DATA_PATH):  # noqa: PTH112
        # Models of the user's own.
        return get_session().create_client(service, config=config)
    session.register_component("data_loader", _Loader(service))
    events = session.get_component("event_emitter")
    register = {None: events.register, REGISTER_FIRST: events.register_first, REGISTER_LAST: events.register_last}
    for name, handler, *order in BUILTIN_HANDLERS:
        # 106 of 126 are for requests of other services, and for their documentation.
        if name.split(".")[1:2] in ([], [service]):
            register[order[0] if order else None](name, handler)
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        # What botocore asks first; each of the others that it makes has its pools of connections.
        provider = CredentialResolver([EnvProvider()])
    else:
        # Some of the others are clients of other services, such as STS.
        provider = get_session().get_component("credential_provider")
    session.register_component("credential_provider", provider)
    return session.create_client(service, config=config)

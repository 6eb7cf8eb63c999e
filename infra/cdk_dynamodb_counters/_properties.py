"""Properties of a resource as its template shows them."""

from __future__ import annotations

from typing import Any, cast

from aws_cdk import CfnResource, IInspectable, Stack, TreeInspector


def resolved_property(resource: CfnResource, name: str) -> Any:
    """Return a property by its camel-case name, or None."""
    # The resource's getter does not work: jsii returns an empty or broken copy of a property that CDK produces lazily.
    inspector = TreeInspector()
    # Every generated resource class is inspectable; their common base class does not declare it.
    cast(IInspectable, resource).inspect(inspector)
    return Stack.of(resource).resolve(inspector.attributes["aws:cdk:cloudformation:props"].get(name))

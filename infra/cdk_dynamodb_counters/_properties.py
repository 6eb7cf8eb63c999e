"""Properties of a resource as its template will show them."""

from __future__ import annotations

from typing import Any, cast

from aws_cdk import CfnResource, IInspectable, Stack, TreeInspector


def resolved_property(resource: CfnResource, name: str) -> Any:
    """Give a property, by its name in camel case, or None.

    A getter of the resource cannot be asked: where a property is decided late, as with most of CDK's own constructs,
    jsii hands Python an empty or broken copy.
    """
    inspector = TreeInspector()
    # Every generated resource class can be inspected; their common base does not say so.
    cast(IInspectable, resource).inspect(inspector)
    return Stack.of(resource).resolve(inspector.attributes["aws:cdk:cloudformation:props"].get(name))

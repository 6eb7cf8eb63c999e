"""Queues: nothing that was taken is lost, or handled twice at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.gate.rule import rule
from tests.gate.template import Resource, Template, covers

_LONGEST_WINDOW: Final = 300
_LOOPS: Final = "lambda/latest/dg/invocation-recursion.html"
_CONFIGURE: Final = "lambda/latest/dg/services-sqs-configure.html"


def _sources(template: Template) -> Iterator[tuple[Resource, Resource, Resource]]:
    """Each mapping of a queue, with its queue and function."""
    for mapping, function in template.mappings("queue"):
        queue = template.of(mapping["EventSourceArn"], "SQS::Queue")
        assert queue is not None
        yield mapping, queue, function


@rule(_CONFIGURE)
def messages_stay_hidden_while_they_are_handled(template: Template) -> Iterator[str]:
    """Six times the function's timeout, and the batching window; 12 hours at most."""
    for mapping, queue, function in _sources(template):
        window = mapping["MaximumBatchingWindowInSeconds"] or 0
        window = _LONGEST_WINDOW if isinstance(window, dict) else window
        least = 6 * function.properties.get("Timeout", 3) + window
        if not least <= queue.properties.get("VisibilityTimeout", 30) <= 43_200:
            yield f"{queue.id}: hides messages for {queue['VisibilityTimeout']} s, expected {least} to 43,200"


@rule(_CONFIGURE)
def messages_are_tried_five_times(template: Template) -> Iterator[str]:
    """Throttled invocations use up receives: at least five before a message counts as dead."""
    for _, queue, _ in _sources(template):
        policy = queue["RedrivePolicy"] or {}
        if template.of(policy.get("deadLetterTargetArn"), "SQS::Queue") is None:
            yield f"{queue.id}: no dead-letter queue"
        elif policy["maxReceiveCount"] < 5:
            yield f"{queue.id}: {policy['maxReceiveCount']} receives"


@rule(_LOOPS)
def nothing_feeds_its_own_queue(template: Template) -> Iterator[str]:
    """Lambda ends a chain of about 16 invocations: what is sent again as often becomes a dead letter."""
    for _, queue, function in _sources(template):
        for one in template.allowed(function["Role"]):
            if one.action == "sqs:SendMessage" and covers(one.resource, {"Fn::GetAtt": [queue.id, "Arn"]}):
                yield f"{function.id}: sends to {queue.id}, which invokes it"


@rule(_CONFIGURE)
def what_could_not_be_accepted_comes_again_alone(template: Template) -> Iterator[str]:
    """Without it, a response means that all of a batch is done."""
    for mapping, _, _ in _sources(template):
        if mapping["FunctionResponseTypes"] != ["ReportBatchItemFailures"]:
            yield f"{mapping.id}: FunctionResponseTypes {mapping['FunctionResponseTypes']}"


@rule("AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html")
def dead_letters_outlive_their_queue(template: Template) -> Iterator[str]:
    """A dead letter keeps its age, so it needs the longer retention."""
    for _, queue, _ in _sources(template):
        dead = template.of((queue["RedrivePolicy"] or {}).get("deadLetterTargetArn"), "SQS::Queue")
        if dead is not None and (dead["MessageRetentionPeriod"] or 0) <= (queue["MessageRetentionPeriod"] or 345_600):
            yield f"{dead.id}: keeps messages no longer than {queue.id}"


@rule("AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html")
def queues_stay_within_bounds(template: Template) -> Iterator[str]:
    """A minute to 14 days of retention."""
    for queue in template.each("SQS::Queue"):
        if not 60 <= queue.properties.get("MessageRetentionPeriod", 345_600) <= 1_209_600:
            yield f"{queue.id}: retention {queue['MessageRetentionPeriod']}"


@rule("AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html")
def what_nothing_else_stores_is_retained(template: Template) -> Iterator[str]:
    """Tables, queues and buckets hold what was answered with 202: they outlive their stack and a replacement."""
    for resource in template.each("DynamoDB::GlobalTable", "DynamoDB::Table", "SQS::Queue", "S3::Bucket"):
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if resource.document.get(policy) != "Retain":
                yield f"{resource.id}: {policy} {resource.document.get(policy)}"

"""Resources that questions are asked of, next to the copy: a stream, a queue, a nested stack, and tables to refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from aws_cdk import Duration, NestedStack, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk_dynamodb_counters._aggregator_parts import completion_of
from cdk_dynamodb_counters.function_options import RUNTIMES
from demo.aws_smoke.questions.refusals import REFUSED

_CODE: Final = Path(__file__).with_name("probe_function.py").read_text()
_TIMEOUT: Final = Duration.seconds(10)


def add_probe(stack: Stack) -> dict[str, str]:
    """Add them to a stack; return the outputs by which they are found."""
    probe = Construct(stack, "Probe")
    group = logs.LogGroup(probe, "Logs", retention=logs.RetentionDays.ONE_DAY)
    bucket = s3.Bucket(probe, "Bucket", block_public_access=s3.BlockPublicAccess.BLOCK_ALL, enforce_ssl=True)
    table = _table(probe, "Table", dynamodb.StreamViewType.NEW_AND_OLD_IMAGES)
    streamed = _function(probe, "Streamed", group)
    streamed.add_event_source(
        sources.DynamoEventSource(
            table,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            max_batching_window=Duration.seconds(5),
            # As the aggregator's mapping, but for how long it waits and tries.
            tumbling_window=Duration.seconds(30),
            bisect_batch_on_error=True,
            retry_attempts=1,
            on_failure=sources.S3OnFailureDestination(bucket),
        )
    )
    letters = sqs.Queue(probe, "Letters", enforce_ssl=True)
    queue = sqs.Queue(
        probe,
        "Queue",
        enforce_ssl=True,
        visibility_timeout=_TIMEOUT,
        dead_letter_queue=sqs.DeadLetterQueue(queue=letters, max_receive_count=1),
    )
    queued = _function(probe, "Queued", group, {"QUEUE_URL": queue.queue_url})
    queue.grant_send_messages(queued)
    queued.add_event_source(
        sources.SqsEventSource(queue, max_batching_window=Duration.seconds(2), report_batch_item_failures=True)
    )
    nested = NestedStack(probe, "Nested")
    target = targets.LambdaFunction(_function(nested, "Completed", group))
    events.Rule(nested, "Complete", event_pattern=completion_of(nested), targets=[target])
    return {
        "ProbeLogs": group.log_group_name,
        "ProbeBucket": bucket.bucket_name,
        "ProbeTable": table.table_name,
        "ProbeStreamed": streamed.function_name,
        "ProbeQueue": queue.queue_url,
        "ProbeLetters": letters.queue_url,
        **{f"Refuses{name}": _table(probe, f"Refuses{name}").table_name for name in REFUSED},
    }


def _table(scope: Construct, name: str, stream: dynamodb.StreamViewType | None = None) -> dynamodb.TableV2:
    pk, sk = (dynamodb.Attribute(name=key, type=dynamodb.AttributeType.STRING) for key in ("pk", "sk"))
    policy = RemovalPolicy.DESTROY
    return dynamodb.TableV2(scope, name, partition_key=pk, sort_key=sk, dynamo_stream=stream, removal_policy=policy)


def _function(
    scope: Construct, name: str, group: logs.LogGroup, environment: dict[str, str] | None = None
) -> lambda_.Function:
    return lambda_.Function(
        scope,
        name,
        code=lambda_.Code.from_inline(_CODE),
        handler="index.handler",
        runtime=RUNTIMES[-1],
        timeout=_TIMEOUT,
        log_group=group,
        environment=environment,
    )

"""The example app's resources in plain L2 constructs: what one would write without this project's constructs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aws_cdk import App, CfnOutput, Duration, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

ALARM: Final = "AWS::CloudWatch::Alarm"
RULE: Final = "AWS::Events::Rule"

_ROUTES: Final = ("/v1/aggregates/{name}", "/v1/windows/{name}", "/v1/batch", "/v1/openapi.json", "/{proxy+}")
"""As many as the blog's read API has; their names cost nothing."""


class CountingStack(Stack):
    """Table, function with role, alias, log group, event source and bucket; `numbers` of rules and alarms."""

    def __init__(self, scope: Construct, construct_id: str, asset: Path, numbers: Mapping[str, int]) -> None:
        super().__init__(scope, construct_id)
        self.asset = asset
        recovery = dynamodb.PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True)
        self.table = dynamodb.TableV2(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            dynamo_stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            time_to_live_attribute="ttl",
            deletion_protection=True,
            point_in_time_recovery_specification=recovery,
        )
        group = logs.LogGroup(self, "Logs", retention=logs.RetentionDays.ONE_MONTH)
        self.counter = self.function("Function", "aggregator", group)
        self.table.grant_read_write_data(self.counter)
        self.on_failure = sources.S3OnFailureDestination(_bucket(self, "OnFailure"))
        self.counts(self.table)
        changed = events.EventPattern(source=["aws.cloudformation"])
        lambda_.Alias(self, "Alias", alias_name="watch", version=self.counter.latest_version)
        for number in range(numbers[RULE]):
            target = targets.LambdaFunction(self.counter)
            events.Rule(self, f"Rule{number}", event_pattern=changed, targets=[target])
        for number in range(numbers[ALARM]):
            self.counter.metric_errors().create_alarm(self, f"Alarm{number}", threshold=1, evaluation_periods=1)
        outputs = (self.table.table_name, self.counter.function_name, group.log_group_name)
        for name, value in zip(("TableName", "FunctionName", "LogGroupName"), outputs, strict=True):
            CfnOutput(self, name, value=value)

    def counts(self, table: dynamodb.ITable) -> None:
        """Let the function count the records of a table's stream."""
        stream = sources.DynamoEventSource(
            table,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=1000,
            bisect_batch_on_error=True,
            tumbling_window=Duration.minutes(15),
            on_failure=self.on_failure,
        )
        self.counter.add_event_source(stream)

    def function(self, name: str, handler: str, group: logs.ILogGroup) -> lambda_.Function:
        role = iam.Role(self, f"{name}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        group.grant_write(role)
        return lambda_.Function(
            self,
            name,
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            code=lambda_.Code.from_asset(str(self.asset)),
            handler=f"dynamodb_counters.handlers.{handler}.handler",
            role=role,
            log_group=group,
            timeout=Duration.minutes(1),
            environment={"TABLE_NAME": self.table.table_name},
        )


class BesideStack(CountingStack):
    """The same, counting another table's stream as well."""

    def __init__(self, scope: Construct, construct_id: str, asset: Path, numbers: Mapping[str, int]) -> None:
        super().__init__(scope, construct_id, asset, numbers)
        orders = dynamodb.Table(
            self,
            "Orders",
            partition_key=dynamodb.Attribute(name="PK", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="SK", type=dynamodb.AttributeType.STRING),
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
        )
        self.counts(orders)
        CfnOutput(self, "SourceTableName", value=orders.table_name)


class HttpStack(CountingStack):
    """The same with two queues, and an HTTP API that writes to one and reads counts."""

    def __init__(self, scope: Construct, construct_id: str, asset: Path, numbers: Mapping[str, int]) -> None:
        # One of the rules is that of the events.
        super().__init__(scope, construct_id, asset, {**numbers, RULE: numbers[RULE] - 1})
        self.notifies()
        dead = _queue(self, "DeadLetters")
        queue = _queue(self, "Queue", sqs.DeadLetterQueue(queue=dead, max_receive_count=3))
        month = logs.RetentionDays.ONE_MONTH
        reading, taking = (logs.LogGroup(self, name, retention=month) for name in ("ReadingLogs", "TakingLogs"))
        reader = self.function("Reader", "api", reading)
        self.table.grant_read_data(reader)
        receiver = self.function("Receiver", "ingest_http", taking)
        queue.grant_send_messages(receiver)
        consumer = self.function("Consumer", "ingest_queue", taking)
        self.table.grant_write_data(consumer)
        window = Duration.seconds(1)
        consumer.add_event_source(
            sources.SqsEventSource(queue, batch_size=100, max_batching_window=window, report_batch_item_failures=True)
        )
        api = apigateway.HttpApi(self, "Api", create_default_stage=False)
        throttle = apigateway.ThrottleSettings(rate_limit=1000, burst_limit=2000)
        stage = apigateway.HttpStage(self, "Stage", http_api=api, auto_deploy=True, throttle=throttle)
        resource = stage.node.default_child
        assert isinstance(resource, apigateway.CfnStage)
        resource.access_log_settings = apigateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=logs.LogGroup(self, "AccessLogs").log_group_arn,
            format=json.dumps({"requestId": "$context.requestId"}),
        )
        read = integrations.HttpLambdaIntegration("Read", reader)
        for path in _ROUTES:
            api.add_routes(path=path, methods=[apigateway.HttpMethod.GET], integration=read)
        take = integrations.HttpLambdaIntegration("Take", receiver)
        api.add_routes(path="/events", methods=[apigateway.HttpMethod.POST], integration=take)
        CfnOutput(self, "ApiId", value=api.api_id)

    def notifies(self) -> None:
        """Send what the table's stream says to EventBridge, and from there to a queue."""
        notifier = self.function("Notifier", "notifier", logs.LogGroup(self, "NotifierLogs"))
        stream = sources.DynamoEventSource(
            self.table,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            report_batch_item_failures=True,
            on_failure=sources.S3OnFailureDestination(_bucket(self, "NotSent")),
            filters=[lambda_.FilterCriteria.filter({"eventName": lambda_.FilterRule.is_equal("INSERT")})],
        )
        notifier.add_event_source(stream)
        events.EventBus.from_event_bus_name(self, "Bus", "default").grant_put_events_to(notifier)
        target = targets.SqsQueue(_queue(self, "Inbox"))
        events.Rule(self, "Crossed", event_pattern=events.EventPattern(source=["counters"]), targets=[target])


def _bucket(scope: Construct, name: str) -> s3.Bucket:
    return s3.Bucket(
        scope,
        name,
        encryption=s3.BucketEncryption.S3_MANAGED,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        enforce_ssl=True,
        lifecycle_rules=[s3.LifecycleRule(expiration=Duration.days(90))],
    )


def _queue(scope: Construct, name: str, dead: sqs.DeadLetterQueue | None = None) -> sqs.Queue:
    return sqs.Queue(scope, name, encryption=sqs.QueueEncryption.SQS_MANAGED, enforce_ssl=True, dead_letter_queue=dead)


_KINDS: Final[Mapping[str, type[CountingStack]]] = {"CountersBlog": HttpStack, "CountersOrders": BesideStack}

if __name__ == "__main__":
    # As many stacks as the example app has, each with as many rules and alarms.
    app, asset = App(), Path(sys.argv[1])
    for name, numbers in json.loads(sys.argv[2]).items():
        _KINDS.get(name, CountingStack)(app, name, asset, numbers)
    app.synth()

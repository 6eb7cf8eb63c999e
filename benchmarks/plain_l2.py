"""The example app's resources in plain L2 constructs: what one would write without this project's constructs."""

from __future__ import annotations

import sys
from pathlib import Path

from aws_cdk import App, CfnOutput, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct


class PlainStack(Stack):
    """Table, function with role and log group, its event source, bucket for what it gives up on, four alarms.

    Parameters
    ----------
    scope : Construct
        The app.
    construct_id : str
        The stack's name.
    asset : Path
        Directory with the function's code.
    """

    def __init__(self, scope: Construct, construct_id: str, asset: Path) -> None:
        super().__init__(scope, construct_id)
        table = dynamodb.TableV2(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            dynamo_stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            time_to_live_attribute="ttl",
            deletion_protection=True,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
        )
        bucket = s3.Bucket(
            self,
            "OnFailure",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            lifecycle_rules=[s3.LifecycleRule(expiration=Duration.days(90))],
        )
        group = logs.LogGroup(self, "Logs", retention=logs.RetentionDays.ONE_MONTH)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        group.grant_write(role)
        function = lambda_.Function(
            self,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            code=lambda_.Code.from_asset(str(asset)),
            handler="dynamodb_counters.handlers.aggregator.handler",
            role=role,
            log_group=group,
            tracing=lambda_.Tracing.ACTIVE,
            timeout=Duration.minutes(1),
            environment={"TABLE_NAME": table.table_name},
        )
        table.grant_read_write_data(function)
        function.add_event_source(
            sources.DynamoEventSource(
                table,
                starting_position=lambda_.StartingPosition.TRIM_HORIZON,
                batch_size=1000,
                bisect_batch_on_error=True,
                tumbling_window=Duration.minutes(15),
                on_failure=sources.S3OnFailureDestination(bucket),
            )
        )
        for name in ("Lag", "Quarantine", "GivenUp", "Dropped"):
            cloudwatch.Alarm(
                self,
                name,
                metric=function.metric_errors(),
                threshold=1,
                evaluation_periods=1,
            )
        CfnOutput(self, "TableName", value=table.table_name)
        CfnOutput(self, "FunctionName", value=function.function_name)
        CfnOutput(self, "LogGroupName", value=group.log_group_name)


def main() -> None:
    """Synthesize two of the stacks, as many as the example app has."""
    app = App()
    for name in ("PlainBlog", "PlainJobs"):
        PlainStack(app, name, Path(sys.argv[1]))
    app.synth()


if __name__ == "__main__":
    main()

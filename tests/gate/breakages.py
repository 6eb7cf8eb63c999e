"""For each rule, what breaks a template in the way that the rule is there to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

Break: TypeAlias = Callable[[dict[str, Any]], object]

_STREAM: Final = "CountersBlog"
_HTTP: Final = "ingest_everything"
_VERIFIED: Final = "aggregator_verified"
_MONITORED: Final = "aggregator_monitored"
_DIRECT: Final = "ingest_direct"
_KEY: Final = {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": {"Statement": []}}}
_OWN: Final = {"Type": "AWS::Lambda::Function", "Properties": {}}


def _each(document: dict[str, Any], kind: str, having: str = "") -> list[dict[str, Any]]:
    found = [one for one in document["Resources"].values() if one["Type"] == f"AWS::{kind}"]
    return [one for one in found if having in str(one.setdefault("Properties", {}))]


def sets(kind: str, having: str = "", **values: Any) -> Break:
    """Set properties of the resources of a type whose properties mention `having`; None removes one."""

    def broken(document: dict[str, Any]) -> None:
        resources = _each(document, kind, having)
        assert resources, f"no {kind}"
        for resource in resources:
            resource["Properties"] |= values
            resource["Properties"] = {name: one for name, one in resource["Properties"].items() if one is not None}

    return broken


def removes(kind: str, having: str = "") -> Break:
    """Remove the resources of a type whose properties mention `having`."""

    def broken(document: dict[str, Any]) -> None:
        gone = _each(document, kind, having)
        assert gone, f"no {kind}"
        document["Resources"] = {name: one for name, one in document["Resources"].items() if one not in gone}

    return broken


def forbids(action: str) -> Break:
    """Take an action out of every policy."""

    def broken(document: dict[str, Any]) -> None:
        for policy in _each(document, "IAM::Policy", action):
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                actions = statement["Action"]
                kept = [one for one in ([actions] if isinstance(actions, str) else actions) if one != action]
                statement["Action"] = kept

    return broken


def _variables(**values: str) -> Break:
    def broken(document: dict[str, Any]) -> None:
        for function in _each(document, "Lambda::Function", "Environment"):
            function["Properties"]["Environment"]["Variables"] |= values

    return broken


def _deletes_queues(document: dict[str, Any]) -> None:
    for queue in _each(document, "SQS::Queue"):
        queue["DeletionPolicy"] = "Delete"


def _adds(**resources: dict[str, Any]) -> Break:
    return lambda document: document["Resources"].update(resources)


def _encrypts_logs(document: dict[str, Any]) -> None:
    document["Resources"]["Key"] = _KEY
    sets("Logs::LogGroup", KmsKeyId={"Fn::GetAtt": ["Key", "Arn"]})(document)


def _authorizer(document: dict[str, Any]) -> None:
    authorizer = {"AuthorizerType": "REQUEST", "AuthorizerUri": {"Fn::GetAtt": ["Own", "Arn"]}}
    _adds(Own=_OWN, Checks={"Type": "AWS::ApiGatewayV2::Authorizer", "Properties": authorizer})(document)


def _redrive(document: dict[str, Any]) -> dict[str, Any]:
    [queue] = _each(document, "SQS::Queue", "RedrivePolicy")
    found: dict[str, Any] = queue["Properties"]["RedrivePolicy"]
    return found


def _in_a_vpc(document: dict[str, Any]) -> None:
    sets("Lambda::Function", VpcConfig={"SubnetIds": ["subnet-1"], "SecurityGroupIds": ["sg-1"]})(document)
    sets("IAM::Role", ManagedPolicyArns=None)(document)
    for action in ("ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DeleteNetworkInterface"):
        forbids(action)(document)


_MAPPING: Final = "Lambda::EventSourceMapping"
_DESTINATION: Final = "MaximumRecordAgeInSeconds"
_STREAM_ARN: Final = "arn:aws:dynamodb:us-east-1:123456789012:table/other/stream/2026"
_FUNCTION: Final = "Lambda::Function"
_ALARM: Final = "CloudWatch::Alarm"
_STAGE: Final = "ApiGatewayV2::Stage"
_ROUTE: Final = "ApiGatewayV2::Route"
_API: Final = "ApiGatewayV2::Api"
_LOGS: Final = "Logs::LogGroup"
_ENOUGH: Final = ["authorization", "content-type"]
_BODY: Final = '{"widgets":[{"properties":{"metrics":[["AWS/SQS","Depth"]]}}]}'

BREAKAGES: Final[dict[str, list[tuple[str, Break]]]] = {
    "mappings_stay_within_bounds": [
        (_STREAM, sets(_MAPPING, BatchSize=10_001)),
        (_STREAM, sets(_MAPPING, MaximumBatchingWindowInSeconds=301)),
        (_STREAM, sets(_MAPPING, _DESTINATION, TumblingWindowInSeconds=901)),
    ],
    "large_batches_need_a_window": [
        (_HTTP, sets(_MAPPING, MaximumBatchingWindowInSeconds=0)),
        (_HTTP, sets(_MAPPING, MaximumBatchingWindowInSeconds=None)),
    ],
    "concurrency_of_a_queue_fits": [
        (_HTTP, sets(_MAPPING, ScalingConfig={"MaximumConcurrency": 1})),
        (_HTTP, sets(_FUNCTION, ReservedConcurrentExecutions=5)),
    ],
    "consumers_report_single_messages": [(_HTTP, sets(_MAPPING, FunctionResponseTypes=None))],
    "tumbling_windows_exclude_parallelism_and_filters": [
        (_STREAM, sets(_MAPPING, _DESTINATION, ParallelizationFactor=2)),
        (_STREAM, sets(_MAPPING, _DESTINATION, FilterCriteria={"Filters": [{"Pattern": "{}"}]})),
    ],
    "batches_of_a_stream_name_their_shard": [(_STREAM, sets(_MAPPING, TumblingWindowInSeconds=None))],
    "crossings_are_reported_one_by_one": [
        ("thresholds_minimal", sets(_MAPPING, "FilterCriteria", FunctionResponseTypes=None))
    ],
    "records_are_given_up_before_the_stream_forgets_them": [
        (_STREAM, sets(_MAPPING, _DESTINATION, MaximumRecordAgeInSeconds=-1)),
        (_STREAM, sets(_MAPPING, _DESTINATION, MaximumRecordAgeInSeconds=86_400)),
        (_STREAM, sets(_MAPPING, _DESTINATION, MaximumRetryAttempts=3)),
        (_STREAM, sets(_MAPPING, _DESTINATION, DestinationConfig=None)),
    ],
    "no_record_is_older_than_its_mapping": [(_STREAM, sets(_MAPPING, _DESTINATION, StartingPosition="LATEST"))],
    "tables_keep_their_names": [(_STREAM, sets("DynamoDB::GlobalTable", TableName="countsntscounterstable48105cc6"))],
    "functions_know_the_tables_whose_streams_they_read": [
        (_STREAM, sets(_MAPPING, _DESTINATION, EventSourceArn={"Fn::GetAtt": ["Other", "StreamArn"]})),
        ("apart_minimal", _variables(SOURCE_TABLE_ARN="arn:aws:dynamodb:us-east-1:123456789012:table/other")),
        (_STREAM, sets(_MAPPING, _DESTINATION, EventSourceArn=_STREAM_ARN)),
    ],
    "roles_may_write_to_the_destination": [(_STREAM, forbids("s3:PutObject")), (_STREAM, forbids("s3:ListBucket"))],
    "messages_stay_hidden_while_they_are_handled": [
        (_HTTP, sets("SQS::Queue", "RedrivePolicy", VisibilityTimeout=779)),
        (_HTTP, sets(_MAPPING, MaximumBatchingWindowInSeconds={"Ref": "Window"})),
    ],
    "messages_are_tried_five_times": [
        (_HTTP, sets("SQS::Queue", "RedrivePolicy", RedrivePolicy=None)),
        (_HTTP, lambda document: _redrive(document).update(maxReceiveCount=4)),
    ],
    "only_what_feeds_its_own_queue_may_loop": [
        (_HTTP, sets(_FUNCTION, "ingest_queue", RecursiveLoop=None)),
        (_HTTP, sets(_FUNCTION, "ingest_http", RecursiveLoop="Allow")),
        (_STREAM, sets(_FUNCTION, RecursiveLoop="Allow")),
    ],
    "dead_letters_outlive_their_queue": [(_HTTP, sets("SQS::Queue", MessageRetentionPeriod=1_209_600))],
    "queues_stay_within_bounds": [(_HTTP, sets("SQS::Queue", MessageRetentionPeriod=1_209_601))],
    "what_nothing_else_stores_is_retained": [(_HTTP, _deletes_queues)],
    "environments_fit": [(_HTTP, _variables(SCHEMA='"' * 2000))],
    "environments_leave_lambdas_own_variables_alone": [(_HTTP, _variables(AWS_REGION="us-east-1"))],
    "functions_stay_within_bounds": [
        (_HTTP, sets(_FUNCTION, MemorySize=64)),
        (_HTTP, sets(_FUNCTION, Timeout=901)),
        (_HTTP, sets(_FUNCTION, Description="x" * 257)),
    ],
    "requests_are_answered_in_time": [(_HTTP, sets(_FUNCTION, "ingest_http", Timeout=30))],
    "handlers_exist": [(_HTTP, sets(_FUNCTION, Handler="dynamodb_counters.handlers.gone.handler"))],
    "metrics_pass_the_log_level": [(_HTTP, sets(_FUNCTION, LoggingConfig={"ApplicationLogLevel": "WARN"}))],
    "permissions_name_who_invokes": [(_HTTP, sets("Lambda::Permission", SourceArn=None))],
    "rules_may_invoke_their_targets": [
        (_STREAM, removes("Lambda::Permission", "events.amazonaws.com")),
        (_STREAM, sets("Lambda::Permission", "events.amazonaws.com", SourceArn="arn:aws:events:::rule/other")),
    ],
    "routes_may_invoke_their_functions": [
        (_HTTP, removes("Lambda::Permission")),
        (_HTTP, sets(_ROUTE, RouteKey="POST /elsewhere")),
        (_HTTP, sets("Lambda::Permission", SourceArn="arn:aws:execute-api:us-east-1:1:other/*/*/v1/views")),
    ],
    "functions_in_a_vpc_may_have_network_interfaces": [
        ("aggregator_minimal", _in_a_vpc),
    ],
    "browsers_may_send_what_a_signature_takes": [
        (_HTTP, sets(_API, CorsConfiguration={"AllowOrigins": ["https://a.example"], "AllowHeaders": _ENOUGH})),
        (_HTTP, sets(_API, CorsConfiguration={"AllowOrigins": ["*"], "AllowHeaders": ["*"], "AllowCredentials": True})),
    ],
    "routes_have_their_authorizer": [
        (_HTTP, sets(_ROUTE, AuthorizerId=None)),
        (_HTTP, sets(_ROUTE, AuthorizationType=None)),
    ],
    "authorizers_may_invoke_their_functions": [(_HTTP, _authorizer)],
    "apis_may_send_to_their_queues": [
        (_DIRECT, forbids("sqs:SendMessage")),
        (_DIRECT, sets("ApiGatewayV2::Integration", PayloadFormatVersion="2.0")),
        (_DIRECT, sets("ApiGatewayV2::Integration", RequestParameters=None)),
    ],
    "access_is_logged_without_growing_the_accounts_policy": [
        (_HTTP, sets(_STAGE, AccessLogSettings=None)),
        (_HTTP, sets(_LOGS, LogGroupName=None)),
    ],
    "stages_are_throttled": [
        (_HTTP, sets(_STAGE, DefaultRouteSettings=None)),
        (_HTTP, sets(_STAGE, AutoDeploy=False)),
    ],
    "caches_keep_what_is_protected_private": [("api_minimal", _variables(CACHE_CONTROL="public, max-age=5"))],
    "tenants_come_from_the_authorizer": [
        (_HTTP, _variables(TENANT='{"customer":"iam.accountId"}')),
        ("api_everything", _variables(TENANT='{"customer":"claims.sub"}')),
    ],
    "alarms_name_their_section_of_the_runbook": [
        (_STREAM, sets(_ALARM, AlarmDescription="Runbook: docs/runbook.md#gone")),
        (_STREAM, sets(_ALARM, AlarmDescription=None)),
    ],
    "alarms_say_what_silence_means": [
        (_STREAM, sets(_ALARM, TreatMissingData=None)),
        (_STREAM, sets(_ALARM, "PolledEventCount", TreatMissingData="notBreaching")),
    ],
    "alarms_look_back_no_further_than_cloudwatch": [
        (_STREAM, sets(_ALARM, EvaluationPeriods=289)),
        (_STREAM, sets(_ALARM, Period=45)),
        (_STREAM, sets(_ALARM, DatapointsToAlarm=1000)),
    ],
    "metrics_exist": [
        (_STREAM, sets(_ALARM, "IteratorAge", Dimensions=[{"Name": "Function", "Value": "f"}])),
        (_STREAM, sets(_ALARM, "DynamoDBCounters", MetricName="Quarantine")),
        (_MONITORED, sets("CloudWatch::Dashboard", DashboardBody=_BODY)),
    ],
    "metrics_of_a_mapping_are_asked_for": [(_STREAM, sets(_MAPPING, MetricsConfig=None))],
    "streams_are_watched": [
        (_STREAM, removes(_ALARM, "PolledEventCount")),
        (_STREAM, removes(_ALARM, "DestinationDeliveryFailures")),
        (_STREAM, removes(_ALARM, "'Uncounted'")),
        (_STREAM, removes(_ALARM, "UncountedExpiring")),
        (_STREAM, sets(_ALARM, "PolledEventCount", Statistic="Sum")),
        ("thresholds_minimal", removes(_ALARM, "OnFailureDestinationDeliveredEventCount")),
        ("thresholds_minimal", removes(_ALARM, "Crossings of thresholds have waited")),
    ],
    "schedules_have_a_heartbeat": [
        (_STREAM, removes(_ALARM, ":watch")),
        (_STREAM, sets(_ALARM, ":watch", TreatMissingData="notBreaching")),
        (_STREAM, sets("Events::Rule", "rate(", Targets=[{"Arn": {"Ref": "AggregatorFunction65A1DE15"}}])),
        (_VERIFIED, removes(_ALARM, "Verifier")),
        (_VERIFIED, removes(_ALARM, "GroupsVerified")),
    ],
    "receivers_have_an_errors_alarm": [("ingest_minimal", removes(_ALARM, "'Errors'"))],
    "queues_are_watched": [
        (_HTTP, removes(_ALARM, "ApproximateNumberOfMessagesVisible")),
        (_HTTP, removes(_ALARM, "ApproximateAgeOfOldestMessage")),
    ],
    "logs_end": [(_STREAM, sets(_LOGS, RetentionInDays=None)), (_STREAM, sets(_FUNCTION, LoggingConfig=None))],
    "log_keys_trust_cloudwatch": [(_STREAM, _encrypts_logs)],
    "dashboards_stay_within_bounds": [
        (
            _MONITORED,
            sets("CloudWatch::Dashboard", DashboardBody='{"widgets":[' + ",".join(['{"properties":{}}'] * 501) + "]}"),
        )
    ],
    "names_are_allowed": [
        (_STREAM, sets(_FUNCTION, FunctionName="x" * 65)),
        (_STREAM, sets(_LOGS, LogGroupName="/aws/vendedlogs/apis/a b")),
        (_STREAM, sets(_ALARM, AlarmName="x" * 256)),
        (_MONITORED, sets("CloudWatch::Dashboard", DashboardName="a.b")),
        (_STREAM, sets("SQS::Queue", QueueName="x" * 81)),
    ],
    "policies_fit": [(_STREAM, sets("IAM::Policy", PolicyDocument={"Statement": ["x" * 10_241]}))],
    "templates_fit": [
        (_STREAM, lambda document: document.update(Description="x" * 1025)),
        (_STREAM, _adds(**{f"Own{number}": _OWN for number in range(501)})),
    ],
}

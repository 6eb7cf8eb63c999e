"""Direct mode: the consumer accepts the messages that the template's integration makes of requests."""

from __future__ import annotations

import json

from cdk_dynamodb_counters import EventIngest
from simulation.queue.sqs import Queue
from tests.unit.http.counted import DEAD, consumer
from tests.unit.http.handlers import NOW, ranked_table
from tests.unit.infra.support import build, new_stack, properties, synthesized


def test_the_consumer_takes_what_the_integration_sends() -> None:
    template = synthesized(build(EventIngest, new_stack(), mode="direct"))
    integration = properties(template, "AWS::ApiGatewayV2::Integration")
    assert integration["IntegrationSubtype"] == "SQS-SendMessage"
    parameters = integration["RequestParameters"]
    assert parameters["QueueUrl"]["Ref"] in template.find_resources("AWS::SQS::Queue")

    table = ranked_table()
    views = [{"url": '/é "#', "time": f"2026-09-21T14:2{minute}:00Z", "clientId": "c"} for minute in range(3)]
    bodies = [
        json.dumps(views[0]),
        json.dumps(views, indent=2),
        json.dumps(views[1], ensure_ascii=False),
        "no JSON",
        json.dumps([{"url": "/incomplete"}]),
        "[]",
    ]
    # API Gateway documents that parts of the request go where the integration's parameters say.
    attributes = json.loads(parameters["MessageAttributes"].replace("${context.requestTimeEpoch}", str(int(NOW) - 5)))
    queue = Queue(lambda: NOW)
    for body in bodies:
        queue.send({"$request.body": body}[parameters["MessageBody"]], attributes)
    accept = consumer(table)
    assert accept({"Records": [message.record() for message in queue.receive(10)]}) == {"batchItemFailures": []}
    dead = accept.queues[DEAD].messages()
    assert {one.body for one in dead} == {bodies[3], bodies[4]}
    assert {one.attributes["taken"]["StringValue"] for one in dead} == {str(int(NOW) - 5)}
    assert accept.queues.keys() == {DEAD}
    items = list(table.items())
    assert sorted(item["time"]["S"] for item in items) == [view["time"] for view in views]
    assert {item["url"]["S"] for item in items} == {'/é "#'}

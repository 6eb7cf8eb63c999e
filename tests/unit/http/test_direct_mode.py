"""Direct mode: the consumer accepts the messages that the template's integration makes of requests."""

from __future__ import annotations

import json

from cdk_dynamodb_counters import EventIngest
from tests.unit.handlers.queue_world import World, view
from tests.unit.infra.support import build, new_stack, properties, synthesized


def test_the_consumer_takes_what_the_integration_sends() -> None:
    template = synthesized(build(EventIngest, new_stack(), mode="direct"))
    integration = properties(template, "AWS::ApiGatewayV2::Integration")
    assert integration["IntegrationSubtype"] == "SQS-SendMessage"
    parameters = integration["RequestParameters"]
    assert parameters["QueueUrl"]["Ref"] in template.find_resources("AWS::SQS::Queue")

    world = World()
    views = [view('/é "#') | {"clientId": f"c{number}"} for number in range(3)]
    bodies = [
        json.dumps(views[0]),
        json.dumps(views, indent=2),
        json.dumps(views[1], ensure_ascii=False),
        "no JSON",
        json.dumps([{"url": "/incomplete"}]),
        "[]",
    ]
    # API Gateway documents that parts of the request go where the integration's parameters say.
    taken = str(int(world.clock()) - 5)
    attributes = json.loads(parameters["MessageAttributes"].replace("${context.requestTimeEpoch}", taken))
    for body in bodies:
        world.queue.send({"$request.body": body}[parameters["MessageBody"]], attributes)
    assert all(message.is_done for message in world.deliver())
    dead = world.dead.messages()
    assert {one.body for one in dead} == {bodies[3], bodies[4]}
    assert {one.attributes["taken"]["StringValue"] for one in dead} == {taken}
    assert world.urls() == ['/é "#'] * 3

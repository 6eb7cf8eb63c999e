"""A conditional PutItem, then an UpdateItem if the view was new: what happens between the two is lost."""

from __future__ import annotations

from benchmarks.designs.base import TABLE, Design, statistics_key
from demo.examples.blog.traffic import View


class PutThenIncrement(Design):
    name = "put_then_increment"
    title = "page view put, then increment"
    source = "reference 002: DynamoDB in examples 2.1, page and page view (2015)"

    def take(self, view: View) -> None:
        if self.insert(view):
            self.client.update_item(
                TableName=TABLE,
                Key=statistics_key(view.url),
                UpdateExpression="ADD #views :n",
                ExpressionAttributeNames={"#views": "views"},
                ExpressionAttributeValues={":n": {"N": "1"}},
                ReturnValues="ALL_NEW",
            )

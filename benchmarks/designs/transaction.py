"""One TransactWriteItems of marker and counter per event; an existing marker cancels both."""

from __future__ import annotations

from contextlib import suppress

from benchmarks.designs.base import TABLE, Design, increment, view_item
from demo.examples.blog.traffic import View


class TransactionalMarker(Design):
    name = "transaction_marker"
    title = "transaction: marker + counter"
    source = "reference 000, accurate counter: https://aws-blog.de (M. Borgmeier, 2022)"

    def take(self, view: View) -> None:
        marker = {
            "TableName": TABLE,
            "Item": view_item(view),
            "ConditionExpression": "attribute_not_exists(pk) AND attribute_not_exists(sk)",
        }
        with suppress(self.client.exceptions.TransactionCanceledException):
            self.client.transact_write_items(TransactItems=[{"Put": marker}, {"Update": increment(view.url)}])

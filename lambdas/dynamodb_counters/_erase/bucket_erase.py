"""Objects of an on-failure bucket: batches that Lambda gave up on.

Each is a JSON document whose ``payload`` is the event that the function did not manage.
https://docs.aws.amazon.com/lambda/latest/dg/kinesis-on-failure-destination.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from dynamodb_counters._assumptions import TRIES
from dynamodb_counters._erase.matching import Wanted, reduced
from dynamodb_counters.errors import CountersError, MalformedImageError

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
_CHANGED: Final = {"ConditionalRequestConflict", "NoSuchKey", "PreconditionFailed"}


class BucketCopies:
    def __init__(self, client: Any, bucket: str, wanted: Wanted) -> None:
        self._client, self._bucket, self._wanted = client, bucket, wanted

    def sweep(self, *, writes: bool) -> int:
        """Take the events' records out of the objects; return how many events were found."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        keys = [found["Key"] for page in pages for found in page.get("Contents", ())]
        return sum(self._sweep(key, writes=writes) for key in keys)

    def _sweep(self, key: str, *, writes: bool) -> int:
        place = {"Bucket": self._bucket, "Key": key}
        for _ in range(TRIES):
            try:
                answer = self._client.get_object(**place)
            except self._client.exceptions.NoSuchKey:
                return 0
            found, left = remaining(answer["Body"].read(), self._wanted)
            if not found or not writes or self._replace(place, answer, left):
                return found
        raise CountersError(f"the object {key!r} changes all the time")

    def _replace(self, place: dict[str, str], read: Mapping[str, Any], left: bytes | None) -> bool:
        """Replace or delete an object; False if it is not any more what was read."""
        if left is None:
            self._client.delete_object(**place)
        else:
            # Redrives delete objects: what is gone stays gone.
            kept = {name: read[name] for name in ("ContentType", "Metadata") if name in read}
            try:
                self._client.put_object(**place, **kept, Body=left, IfMatch=read["ETag"])
            except ClientError as error:
                if error.response["Error"]["Code"] not in _CHANGED:
                    raise
                return False
        if read.get("VersionId", "null") != "null":
            self._client.delete_object(**place, VersionId=read["VersionId"])
        return True


def remaining(body: bytes, wanted: Wanted) -> tuple[int, bytes | None]:
    """How many of the events an object holds, and the object without them; None if nothing is left."""
    try:
        document = json.loads(body)
        payload = document["payload"]
        batch = json.loads(payload) if isinstance(payload, str) else payload
        parts = [reduced(record, wanted) for record in batch["Records"]]
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError, MalformedImageError):
        return 0, body
    if not (found := sum(here for here, _ in parts)):
        return 0, body
    left = [record for _, record in parts if record is not None]
    if not left:
        return found, None
    batch = {**batch, "Records": left}
    document["payload"] = json.dumps(batch) if isinstance(payload, str) else batch
    return found, json.dumps(document).encode()

"""S3 through s3fs, whose every failure is an OSError that says in a sentence what to do."""

import errno
import os
from functools import lru_cache
from typing import Any

from botocore.exceptions import BotoCoreError, ConnectionError, HTTPClientError
from fsspec.asyn import sync_wrapper
from s3fs import S3FileSystem

from croma_sql.places import CHANGED

OPTIONS = {
    "use_listings_cache": False,  # others write too: what was listed once may be gone
    "config_kwargs": {
        "connect_timeout": 3,
        "retries": {"mode": "standard", "total_max_attempts": 3},  # and s3fs repeats these 5 times
    },
}
_NO_CREDENTIALS = (
    "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
)
_WRONG_CREDENTIALS = (
    "the storage does not accept the credentials; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY "
    "and AWS_ENDPOINT_URL"
)
_DENIED = (
    "access is denied; check the credentials (AWS_ACCESS_KEY_ID, AWS_PROFILE) and their rights"
)
_BY_CODE = {
    "NoSuchBucket": (errno.ENXIO, "there is no such bucket; check its name and AWS_ENDPOINT_URL"),
    "InvalidBucketName": (errno.ENXIO, "no bucket can have this name"),
    "InvalidAccessKeyId": (errno.EACCES, _WRONG_CREDENTIALS),
    "SignatureDoesNotMatch": (errno.EACCES, _WRONG_CREDENTIALS),
    "ExpiredToken": (errno.EACCES, "the credentials have expired; get new ones"),
    "AccessDenied": (errno.EACCES, _DENIED),
    "403": (errno.EACCES, _DENIED),  # all that an answer without a body says
}
_CONDITION_FAILED = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")


class ObjectStorage(S3FileSystem):  # type: ignore[misc]  # s3fs ships no types
    """The file system of all places on S3."""

    async def _call_s3(self, method: str, *akwarglist: Any, **kwargs: Any) -> Any:
        try:
            return await super()._call_s3(method, *akwarglist, **kwargs)
        except OSError as error:
            code = _code(error)
            if code in _CONDITION_FAILED and "IfNoneMatch" in kwargs:
                raise FileExistsError(errno.EEXIST, "it is there already") from error
            if code in _CONDITION_FAILED and "IfMatch" in kwargs:
                raise OSError(
                    errno.EBUSY, f"{kwargs['Key']} has been replaced {CHANGED}"
                ) from error
            if code == "NoSuchKey" and "IfMatch" in kwargs:
                raise OSError(errno.EBUSY, f"{kwargs['Key']} has been removed {CHANGED}") from error
            if code not in _BY_CODE:
                raise
            raise OSError(*_BY_CODE[code]) from error
        except (BotoCoreError, ValueError) as error:
            raise _without_answer(error) from error

    call_s3 = sync_wrapper(_call_s3)


def object_storage() -> ObjectStorage:
    """Give the storage that the environment speaks of now; the same one for as long as it does."""
    return _of(tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))))


@lru_cache(maxsize=4)
def _of(environment: tuple[tuple[str, str], ...]) -> ObjectStorage:
    return ObjectStorage(**OPTIONS, skip_instance_cache=True)


def _code(error: OSError) -> str:
    """Give what the storage calls an error."""
    answer = getattr(error.__cause__, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", ""))


def _without_answer(error: BotoCoreError | ValueError) -> OSError:
    if isinstance(error, ConnectionError | HTTPClientError):
        told = f"the storage cannot be reached ({error}); check AWS_ENDPOINT_URL and the network"
        return OSError(errno.EHOSTUNREACH, told)
    if "Credential" in type(error).__name__:
        return OSError(errno.EACCES, _NO_CREDENTIALS)
    return OSError(errno.EINVAL, str(error))  # settings that make no sense

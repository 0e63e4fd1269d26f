"""gpuaas_client is the platform's GraphQL API in Python: one call is one request.

operations has a function for each operation, which returns a request with types for its input and its answer; a Client
sends it. A refusal is a PlatformError with a code of the platform's catalogue.

    client = Client("https://gpu.example.com", token)
    found = client.request(operations.get_instance("ins_1"))["instance"]
"""

from .client import Client
from .errors import PlatformError, Reason
from .feed import Feed
from .generated import operations
from .generated.codes import ERROR_CODES
from .operation import OperationHandle, has_ended
from .request import Document, Mutation, Query, Request, Subscription

__all__ = [
    "Client", "Document", "ERROR_CODES", "Feed", "Mutation", "OperationHandle", "PlatformError", "Query", "Reason",
    "Request", "Subscription", "has_ended", "operations",
]

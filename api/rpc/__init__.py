"""The door for other nodes: the store, served to processes that have joined it.

What lives here: the service that carries out the messages of `kvlayer.remote`, the connections on
whose behalf it does, the gRPC server and client channel, the token that both must know, and the
authority by which a node knows the server.

It promises that what a node had under way ends with its connection, and that nobody without the
token is answered. It must never know SQL, descriptors or feeds.
"""

from .authority import Authority, AuthorityError, why_unreachable
from .grpc_channel import GrpcChannel
from .grpc_server import RpcServer
from .join_token import JoinToken, JoinTokenError
from .service import NodeTurnedAway, StoreService

__all__ = [
    "Authority",
    "AuthorityError",
    "GrpcChannel",
    "JoinToken",
    "JoinTokenError",
    "NodeTurnedAway",
    "RpcServer",
    "StoreService",
    "why_unreachable",
]

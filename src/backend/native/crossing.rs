//! How the two ends' threads make their namespaces and the link together, each waiting for what it needs of the other.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use super::LinkError;

/// The server's half of the making of the namespaces.
pub(super) struct ServerCrossing {
    /// What the client has made.
    pub(super) from_client: Receiver<Made>,
    /// Tells the client that the link stands; carries the server's namespace where the two share it.
    pub(super) to_client: SyncSender<Option<OwnedFd>>,
}

/// The client's half.
pub(super) struct ClientCrossing {
    pub(super) to_server: SyncSender<Made>,
    pub(super) from_server: Receiver<Option<OwnedFd>>,
}

/// What the client tells the server that it has made.
pub(super) enum Made {
    /// Its namespace.
    Namespace(OwnedFd),
    /// Its end of the link. From then on the link stands whatever the client does.
    End,
}

impl ServerCrossing {
    /// The client's namespace, once it is made.
    pub(super) fn namespace(&self) -> Result<OwnedFd, LinkError> {
        match self.from_client.recv() {
            Ok(Made::Namespace(namespace)) => Ok(namespace),
            Ok(Made::End) | Err(_) => Err(LinkError::OtherEnd),
        }
    }

    /// Whether the client's end of the link stands or will, told as often as it is asked. A client may be done, and its thread gone,
    /// before the server sees that the link is up: such as one that is refused its socket.
    pub(super) fn expects_the_end(&self) -> impl FnMut() -> bool {
        let mut stands = false;
        move || match self.from_client.try_recv() {
            Ok(Made::End) => {
                stands = true;
                true
            }
            Ok(Made::Namespace(_)) | Err(TryRecvError::Empty) => true,
            Err(TryRecvError::Disconnected) => stands,
        }
    }
}

pub(super) fn cross() -> (ServerCrossing, ClientCrossing) {
    let (to_server, from_client) = sync_channel(2);
    let (to_client, from_server) = sync_channel(1);
    (ServerCrossing { from_client, to_client }, ClientCrossing { to_server, from_server })
}

//! What the session kept whole, told to the person when asked.

use super::Host;
use crate::protocol::{Command, EventKind};

impl Host {
    /// Beside the session: it may wait for a disk, and nothing waits for it.
    pub(super) fn tell_artifacts(&self, command: Command) {
        let (router, teller) = (self.router.clone(), self.teller());
        tokio::spawn(async move {
            let told = match command {
                Command::ReadArtifact { uri } => {
                    router.read_artifact(&uri).await.map(|(artifact, text)| EventKind::ArtifactRead { artifact, text })
                }
                _ => router.artifacts().await.map(|artifacts| EventKind::ArtifactsListed { artifacts }),
            };
            let kind = told.unwrap_or_else(|error| EventKind::Notice { message: error.message });
            teller.tell(None, None, kind);
        });
    }
}

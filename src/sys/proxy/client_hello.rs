//! ClientHello check: the first bytes sent through a tunnel must start a TLS connection to the allowed server.

use rustls::server::Acceptor;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum length of a ClientHello in bytes. RFC 8446 allows 16 MiB, but no program sends that much.
const MAX_BYTES: usize = 64 * 1024;
/// Time limit for receiving the ClientHello. A program that opens a tunnel sends it immediately.
const LIMIT: Duration = Duration::from_secs(30);

/// Why a tunnel was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HelloError {
    /// The client disconnected or did not send a whole ClientHello in time.
    Silent,
    /// The client does not use TLS.
    NotTls,
    /// The client requested this other server.
    Other(String),
}

/// Reads the whole ClientHello and checks that it requests `host`. Returns every byte received.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin), host: &url::Host<String>) -> Result<Vec<u8>, HelloError> {
    tokio::time::timeout(LIMIT, greeting(from, host)).await.unwrap_or(Err(HelloError::Silent))
}

async fn greeting(from: &mut (impl AsyncRead + Unpin), host: &url::Host<String>) -> Result<Vec<u8>, HelloError> {
    let mut acceptor = Acceptor::default();
    let mut seen = Vec::new();
    let mut buffer = vec![0; 4 * 1024];
    loop {
        let count = from.read(&mut buffer).await.map_err(|_| HelloError::Silent)?;
        if count == 0 {
            return Err(HelloError::Silent);
        }
        seen.extend_from_slice(&buffer[..count]);
        if seen.len() > MAX_BYTES {
            return Err(HelloError::NotTls);
        }
        let mut fresh = &buffer[..count];
        while !fresh.is_empty() {
            match acceptor.read_tls(&mut fresh) {
                Ok(taken) if taken > 0 => {}
                Ok(_) | Err(_) => return Err(HelloError::NotTls),
            }
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let named = accepted.client_hello().server_name().map(|name| name.trim_end_matches('.').to_ascii_lowercase());
                    return match named {
                        Some(name) if *host != url::Host::Domain(name.clone()) => Err(HelloError::Other(name)),
                        Some(_) | None => Ok(seen),
                    };
                }
                Err(_) => return Err(HelloError::NotTls),
            }
        }
    }
}

/// TLS alert `access_denied` (RFC 8446, section 6.2), which programs report to their users.
pub(super) const ALERT: &[u8] = &[21, 3, 3, 0, 2, 2, 49];

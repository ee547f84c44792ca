//! Messages between aye and its helper over a socket. aye sends the job and then orders. The helper reports the start
//! and the end of the command.

use crate::sys::sandbox::Confinement;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::SocketAddr;

/// Maximum length of a message in bytes, in either direction.
const MAX_MESSAGE_BYTES: u32 = 64 * 1024 * 1024;

/// Job for the helper. The command receives the helper's environment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// Absolute path of the shell.
    pub shell: String,
    /// Arguments to the shell, the last of which is the line to run.
    pub words: Vec<String>,
    /// Resolved working directory, as bytes because it may not be UTF-8.
    pub directory: Vec<u8>,
    pub stdin: Option<String>,
    /// Whether aye writes to the command's input while the command runs.
    pub is_fed: bool,
    pub terminal: Option<TerminalSize>,
    pub confinement: Option<Confinement>,
}

/// Terminal size in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

/// Message from the helper. The first one says that it is ready or could not start the command, and the last one
/// reports the command's outcome. There may be one more in between, which reports connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HelperReport {
    /// The helper is ready. The flags say which descriptors are attached to the message, in this order: the socket of
    /// aye's proxy, the terminal's master side, and the write end of the input pipe.
    Ready {
        proxy: bool,
        terminal: bool,
        input: bool,
    },
    /// The addresses to which the command tried to connect without aye's proxy, although it has no network access.
    Bypasses(Vec<SocketAddr>),
    Exited(i32),
    Signalled(i32),
    NotStarted(String),
    /// The helper killed the command because the disk that contains its layers was nearly full.
    DiskFull,
    /// The helper killed the command because it wrote more to its layers than allowed.
    LayerFull,
    /// The helper killed the command because its shared memory exceeded the memory limit.
    MemoryFull,
}

/// Order to send `SIGINT` to the command's process group.
pub(super) const INTERRUPT: u8 = b'I';
/// Order to send `SIGTERM` to every process of the command.
pub(super) const TERMINATE: u8 = b'T';
/// Order to send `SIGKILL` to every process of the command.
pub(super) const KILL: u8 = b'K';

/// Encodes a message and prepends its length.
pub(super) fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).ok().filter(|length| *length <= MAX_MESSAGE_BYTES);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command and its input are too long"))?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(text);
    Ok(bytes)
}

pub(super) fn length(header: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(header);
    if length > MAX_MESSAGE_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message between aye and its helper is too long"));
    }
    Ok(length as usize)
}

pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut header = [0; 4];
    from.read_exact(&mut header)?;
    let mut text = vec![0; length(header)?];
    from.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

pub(super) fn send<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    to.write_all(&encode(message)?)
}

//! Messages between aye and its helper over one socket. aye sends the job, then orders; the helper reports the start
//! and the end.

use crate::sys::sandbox::Confinement;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// Maximum length of a message in either direction, in bytes.
const MAX_MESSAGE_BYTES: u32 = 64 * 1024 * 1024;

/// Job for the helper. The command gets the environment of the helper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// Absolute path of the shell.
    pub shell: String,
    /// Arguments of the shell; the line is the last one.
    pub words: Vec<String>,
    /// Resolved directory as bytes, because it need not be UTF-8.
    pub directory: Vec<u8>,
    pub stdin: Option<String>,
    /// Whether aye writes input while the command runs.
    pub is_fed: bool,
    pub terminal: Option<TerminalSize>,
    pub confinement: Option<Confinement>,
}

/// Size in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

/// Messages of the helper: readiness or a failure to start first, then the outcome of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HelperReport {
    /// Ready. The flags determine which descriptors come with the message, in this order: the socket of aye's proxy,
    /// the master of the terminal, the write end of the input pipe.
    Ready {
        proxy: bool,
        terminal: bool,
        input: bool,
    },
    Exited(i32),
    Signalled(i32),
    NotStarted(String),
    /// The command was ended because the disk under its layers was nearly full.
    DiskFull,
    /// The command was ended because it wrote more to its layers than their limit.
    LayerFull,
    /// The command was ended because its shared memory exceeded the memory limit.
    MemoryFull,
}

/// Sends `SIGINT` to the process group of the command.
pub(super) const INTERRUPT: u8 = b'I';
/// Sends `SIGTERM` to every process.
pub(super) const TERMINATE: u8 = b'T';
/// Sends `SIGKILL` to every process.
pub(super) const KILL: u8 = b'K';

/// Encodes a message, preceded by its length.
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

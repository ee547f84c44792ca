//! The `HashFile` tool, which computes the hash of a file of any size.

use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Place, Target, ToolError};
use crate::sys::path::open_file;
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::document::content::{Document, NotText};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, not_found_error, open_error, special_file_error};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use encoding_rs::UTF_8;
use md5::Md5;
use schemars::JsonSchema;
use serde::Deserialize;
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Sha256, Sha512};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

const CHUNK_BYTES: usize = 256 * 1024;
/// Number of bytes that are searched for secrets at a time.
const PIECE_BYTES: usize = 8 << 20;
const ALGORITHMS: &str = "`sha256`, `md5`, `sha1`, `sha512`, `blake3`";

pub(in crate::tools) struct HashFile;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    path: String,
    /// `sha256` (default), `md5`, `sha1`, `sha512` or `blake3`.
    algorithm: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Sha256,
    Sha512,
    Sha1,
    Md5,
    Blake3,
}

pub(in crate::tools) struct Work {
    target: Target,
    algorithm: Algorithm,
}

impl Tool for HashFile {
    const NAME: &'static str = "HashFile";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("hash_file"),
        Alias::with_same_arguments("file_hash"),
        Alias::with_same_arguments("checksum"),
        Alias::with_same_arguments("sha256sum"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/HashFile.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Read { target: paths.target("path", &arguments.path, ExpectedKind::File)? }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let target = Paths::on_disk(settings).target("path", &arguments.path, ExpectedKind::File)?;
        let algorithm = Algorithm::parse(arguments.algorithm.as_deref().unwrap_or("sha256"))?;
        Ok(CallDraft::reads(format!("Hash {}", target.given), target.clone(), Work { target, algorithm }))
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || Ok(hash(&work, &settings, &context.kill)?))
    }
}

impl Algorithm {
    fn parse(given: &str) -> Result<Self, ToolError> {
        match given.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "sha256" => Ok(Self::Sha256),
            "sha512" => Ok(Self::Sha512),
            "sha1" => Ok(Self::Sha1),
            "md5" => Ok(Self::Md5),
            "blake3" | "b3" => Ok(Self::Blake3),
            _ => Err(invalid(format!("`algorithm` is `{given}`; it must be one of {ALGORITHMS}"))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
            Self::Sha1 => "sha1",
            Self::Md5 => "md5",
            Self::Blake3 => "blake3",
        }
    }

    fn begin(self) -> Hasher {
        match self {
            Self::Sha256 => Hasher::Other(Box::new(Sha256::default())),
            Self::Sha512 => Hasher::Other(Box::new(Sha512::default())),
            Self::Sha1 => Hasher::Other(Box::new(Sha1::default())),
            Self::Md5 => Hasher::Other(Box::new(Md5::default())),
            Self::Blake3 => Hasher::Blake3(Box::default()),
        }
    }
}

enum Hasher {
    Blake3(Box<blake3::Hasher>),
    Other(Box<dyn DynDigest>),
}

impl Hasher {
    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(hasher) => {
                hasher.update(bytes);
            }
            Self::Other(hasher) => hasher.update(bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            Self::Blake3(hasher) => hasher.finalize().to_hex().to_string(),
            Self::Other(hasher) => crate::text::hex(&hasher.finalize()),
        }
    }
}

fn hash(work: &Work, settings: &ToolSettings, kill: &CancellationToken) -> Result<String, ToolError> {
    let target = &work.target;
    match target.place {
        Place::Missing => return Err(not_found_error(target, settings)),
        Place::Directory => {
            return Err(invalid(format!(
                "`{}` is a directory, and only files can be hashed; list it with ListDirectory",
                target.given
            )));
        }
        Place::Special => return Err(special_file_error(target)),
        Place::File { .. } => {}
    }
    let failed = |error: io::Error| open_error(target, &error);
    let mut file = open_file(&target.real).map_err(failed)?;
    let before = state(&file).map_err(failed)?;
    let mut hasher = work.algorithm.begin();
    let mut total = 0_u64;
    // If a short secret were the only unknown part of the file, hashing all candidates would reveal it.
    let mut look = SecretSearch::new(settings);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        if kill.is_cancelled() {
            return Err(ToolError::new(
                ErrorCode::Cancelled,
                "stopped before the end of the file; call it again if you still need the hash",
            ));
        }
        let count = file.read(&mut chunk).map_err(failed)?;
        if count == 0 {
            break;
        }
        hasher.update(&chunk[..count]);
        total += count as u64;
        look.take(&chunk[..count]);
    }
    if state(&file).map_err(failed)? != before {
        let message =
            format!("`{}` changed while it was read, so the hash would match no version of it; try again", target.given);
        return Err(ToolError::new(ErrorCode::Conflict, message));
    }
    if look.finds_secret() {
        let message = format!(
            "`{}` contains a redacted secret, and the hash would help guess the secret; read the file with ReadFile, or ask the \
             user for the hash",
            target.given
        );
        return Err(ToolError::new(ErrorCode::PermissionDenied, message));
    }
    Ok(format!("{} {}  {} ({total} bytes)", work.algorithm.name(), hasher.finish(), target.given))
}

/// Searches a file for content that ReadFile would redact, one part at a time in order to limit memory use.
struct SecretSearch<'a> {
    settings: &'a ToolSettings,
    /// Bytes that have yet to be searched.
    held: Vec<u8>,
    /// Result, once a secret has been found or the file has turned out not to be text.
    done: Option<Content>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Secret,
    Binary,
}

impl<'a> SecretSearch<'a> {
    fn new(settings: &'a ToolSettings) -> Self {
        Self { settings, held: Vec::new(), done: None }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.done.is_some() {
            return;
        }
        self.held.extend_from_slice(bytes);
        if self.held.len() >= PIECE_BYTES {
            // Search whole lines, if there are any.
            let end = memchr::memrchr(b'\n', &self.held).map_or(self.held.len(), |lf| lf + 1);
            self.search(end);
        }
    }

    fn finds_secret(mut self) -> bool {
        if self.done.is_none() {
            self.search(self.held.len());
        }
        self.done == Some(Content::Secret)
    }

    /// Searches the first `end` bytes in memory, whether or not they are valid text.
    fn search(&mut self, end: usize) {
        let piece = &self.held[..end];
        let is_secret = |text: &str| self.settings.redactor.holds_secret(text).then_some(Content::Secret);
        self.done = match Document::decode(piece) {
            Ok(document) => is_secret(&document.text),
            Err(NotText::Malformed) => is_secret(&UTF_8.decode(piece).0),
            Err(NotText::Binary) => Some(Content::Binary),
        };
        self.held.drain(..end);
    }
}

fn state(file: &File) -> io::Result<(u64, Option<SystemTime>)> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified().ok()))
}

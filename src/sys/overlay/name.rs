//! Serializes paths in the journal, as text if possible and otherwise as bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Name<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes(Vec<u8>),
}

pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => Name::Text(text.into()),
        None => Name::Bytes(path.as_os_str().as_bytes().to_vec()),
    }
    .serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Ok(match Name::deserialize(deserializer)? {
        Name::Text(text) => PathBuf::from(text.as_ref()),
        Name::Bytes(bytes) => PathBuf::from(OsStr::from_bytes(&bytes)),
    })
}

//! Serializes paths in the journal and for other processes, as text if possible and otherwise as bytes.

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

impl<'a> Name<'a> {
    fn from_path(path: &'a Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.into()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }

    fn into_path(self) -> PathBuf {
        match self {
            Self::Text(text) => PathBuf::from(text.into_owned()),
            Self::Bytes(bytes) => PathBuf::from(OsStr::from_bytes(&bytes)),
        }
    }
}

pub(in crate::sys) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    Name::from_path(path).serialize(serializer)
}

pub(in crate::sys) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Name::deserialize(deserializer).map(Name::into_path)
}

/// Serializes lists of paths.
pub(in crate::sys) mod list {
    use super::Name;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::path::PathBuf;

    pub(in crate::sys) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| Name::from_path(path)))
    }

    pub(in crate::sys) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<Name<'_>>::deserialize(deserializer)?.into_iter().map(Name::into_path).collect())
    }
}

/// Serializes lists of pairs of paths.
pub(in crate::sys) mod pairs {
    use super::Name;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::path::PathBuf;

    pub(in crate::sys) fn serialize<S: Serializer>(pairs: &[(PathBuf, PathBuf)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(pairs.iter().map(|(one, other)| (Name::from_path(one), Name::from_path(other))))
    }

    pub(in crate::sys) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(PathBuf, PathBuf)>, D::Error> {
        let pairs = Vec::<(Name<'_>, Name<'_>)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|(one, other)| (one.into_path(), other.into_path())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::sandbox::{Backend, Confinement};

    #[test]
    fn a_confinement_with_paths_that_are_not_valid_utf_8_reaches_the_helper_unchanged() {
        let odd = PathBuf::from(OsStr::from_bytes(b"/w/caf\xe9/.env"));
        let mut confinement = Confinement::new(Backend::Namespaces, vec!["/w".into(), odd.clone()]);
        confinement.hidden = vec![odd.clone(), "/w/caf\u{e9}/.env".into()];
        confinement.links = vec![(odd.clone(), "/w".into()), ("/w".into(), odd)];
        let json = serde_json::to_string(&confinement).unwrap();
        assert_eq!(serde_json::from_str::<Confinement>(&json).unwrap(), confinement);
        let old = json.replace("[47,119,47,99,97,102,233,47,46,101,110,118]", "\"/w/x\"");
        assert_eq!(serde_json::from_str::<Confinement>(&old).unwrap().roots, [Path::new("/w"), Path::new("/w/x")]);
    }
}

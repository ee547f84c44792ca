//! Identity of this machine in the object store: a random ID kept in the data directory, and the host name for
//! messages.

use crate::protocol::Problem;
use crate::sys::file::{Existing, write_whole};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

/// File in the data directory that contains the machine ID.
const FILE: &str = "machine-id";
const ID_DIGITS: usize = 32;

/// Machine that pushes or pulls sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub id: String,
    /// Host name, used only in messages.
    pub host: String,
}

impl Machine {
    /// Returns the identity of this machine. The ID is created on first use.
    pub(crate) fn this(data_dir: &Path) -> Result<Self, Problem> {
        let path = data_dir.join(FILE);
        let failed = |error: &std::io::Error| Problem::new(format!("cannot read `{}`", path.display())).because(error);
        let id = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => None,
            Err(error) => return Err(failed(&error)),
        };
        let id = match id.filter(|id| id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            Some(id) => id,
            None => create(data_dir, &path).map_err(|error| failed(&error))?,
        };
        Ok(Self { id, host: crate::sys::instance::host_name() })
    }
}

/// Creates the machine ID. If another process does the same concurrently, both return the ID that ended up in the file.
fn create(data_dir: &Path, path: &Path) -> std::io::Result<String> {
    let id = uuid::Uuid::new_v4().simple().to_string();
    std::fs::create_dir_all(data_dir)?;
    let line = format!("{id}\n");
    match write_whole(path, line.as_bytes(), Existing::Keep) {
        Ok(()) => Ok(id),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            if text.trim().len() == ID_DIGITS {
                return Ok(text.trim().to_owned());
            }
            // The file is damaged, so it is replaced.
            write_whole(path, line.as_bytes(), Existing::Replace)?;
            Ok(id)
        }
        Err(error) => Err(error),
    }
}

//! Unpacks the entries of an archive or a commit into a folder, checking each entry and enforcing limits.

use super::copy::{FILE_BYTES, MAX_DEPTH, MAX_ENTRIES, MAX_FILES, TOTAL_BYTES, is_plain_name, is_skipped, unwritable};
use crate::protocol::Problem;
use std::collections::HashMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

const PROGRAM_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// Number of bytes read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// A file or folder that has already been written.
struct Entry {
    path: String,
    is_folder: bool,
}

/// Folder that is being filled. Nothing is written outside it, and no path is written twice.
pub(super) struct Unpacked<'a> {
    root: &'a Path,
    /// Entries written so far, keyed by lower-case path.
    entries: HashMap<String, Entry>,
    files: usize,
    bytes: u64,
}

impl<'a> Unpacked<'a> {
    /// Creates an instance without entries. `root` must be an empty folder.
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root, entries: HashMap::new(), files: 0, bytes: 0 }
    }

    /// Creates a folder unless it already exists. `given` is the path in the archive.
    ///
    /// # Errors
    /// Returns an error if the path points outside the root, clashes with another entry, or exceeds a limit.
    pub(super) fn add_folder(&mut self, given: &[u8]) -> Result<(), Problem> {
        match parts(given)? {
            Some(parts) => self.folders(&parts),
            None => Ok(()),
        }
    }

    /// Writes a file. `given` is the path in the archive. Version control files are skipped.
    ///
    /// # Errors
    /// Returns an error if the path points outside the root, clashes with another entry, or exceeds a limit, or if the
    /// content cannot be read or written.
    pub(super) fn add_file(&mut self, given: &[u8], is_program: bool, content: &mut dyn Read) -> Result<(), Problem> {
        let shown = String::from_utf8_lossy(given).escape_debug().to_string();
        let Some(parts) = parts(given)? else { return Ok(()) };
        let Some((_, folders)) = parts.split_last() else {
            return Err(Problem::new(format!("`{shown}` is not a file path")));
        };
        self.folders(folders)?;
        let path = parts.join("/");
        if self.note(&path, false)? {
            return Err(Problem::new(format!("`{path}` appears twice")));
        }
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(Problem::new(format!("the plugin has more than {MAX_FILES} files")));
        }
        let mode = if is_program { PROGRAM_MODE } else { FILE_MODE };
        let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(self.root.join(&path));
        let mut file = opened.map_err(|error| unwritable(&path, error))?;
        let (mut chunk, mut written) = (vec![0; CHUNK_BYTES], 0_u64);
        loop {
            let length = match content.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Problem::new(format!("cannot read `{path}`")).because(error)),
            };
            written += length as u64;
            self.bytes += length as u64;
            if written > FILE_BYTES {
                return Err(Problem::new(format!("`{path}` is larger than {} MB", FILE_BYTES >> 20)));
            }
            if self.bytes > TOTAL_BYTES {
                return Err(Problem::new(format!("the files are larger than {} MB in total", TOTAL_BYTES >> 20)));
            }
            file.write_all(&chunk[..length]).map_err(|error| unwritable(&path, error))?;
        }
    }

    /// Creates a folder and its parents, except for those that already exist.
    fn folders(&mut self, parts: &[&str]) -> Result<(), Problem> {
        if parts.len() > MAX_DEPTH + 1 {
            return Err(Problem::new(format!("`{}`: folders are nested more than {MAX_DEPTH} levels deep", parts.join("/"))));
        }
        for depth in 1..=parts.len() {
            let path = parts[..depth].join("/");
            if !self.note(&path, true)? {
                let created = DirBuilder::new().mode(FOLDER_MODE).create(self.root.join(&path));
                created.map_err(|error| unwritable(&path, error))?;
            }
        }
        Ok(())
    }

    /// Records an entry. Returns whether it has already been recorded.
    fn note(&mut self, path: &str, is_folder: bool) -> Result<bool, Problem> {
        if let Some(known) = self.entries.get(&path.to_lowercase()) {
            if known.path != path {
                let problem = Problem::new(format!("`{path}` differs from `{}` only in case", known.path));
                return Err(problem.hint("rename one of them"));
            }
            if known.is_folder != is_folder {
                return Err(Problem::new(format!("`{path}` is both a file and a folder")));
            }
            return Ok(true);
        }
        if self.entries.len() >= MAX_ENTRIES {
            return Err(Problem::new(format!("the plugin has more than {MAX_ENTRIES} files and folders")));
        }
        self.entries.insert(path.to_lowercase(), Entry { path: path.to_owned(), is_folder });
        Ok(false)
    }
}

/// Splits a path into its components. Returns `None` if the path belongs to version control.
fn parts(given: &[u8]) -> Result<Option<Vec<&str>>, Problem> {
    let shown = || String::from_utf8_lossy(given).escape_debug().to_string();
    let Ok(text) = std::str::from_utf8(given) else {
        return Err(Problem::new(format!("`{}`: the name is not plain text", shown())));
    };
    if text.starts_with('/') || text.split('/').any(|part| part == "..") {
        return Err(Problem::new(format!("`{}` leads outside the archive", shown())));
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if !parts.iter().all(|part| is_plain_name(part)) {
        return Err(Problem::new(format!("`{}`: the name is not plain text", shown())));
    }
    Ok((!parts.iter().any(|part| is_skipped(part))).then_some(parts))
}

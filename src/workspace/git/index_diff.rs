//! Detects staged changes by comparing the index with the trees of the last commit that are stored as loose objects.
//! Packed objects are not read, because the result is only a hint.

use super::{Repository, one_line};
use flate2::read::ZlibDecoder;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum size of a commit or tree object, in bytes.
const OBJECT_BYTES: u64 = 1 << 20;
/// Maximum number of directories to read.
const TREES: usize = 500;
const DEPTH: usize = 64;

pub(super) const HASH: usize = 20;
pub(super) type Hash = [u8; HASH];

/// The index's tree cache, which contains the hashes of unchanged directories.
#[derive(Default)]
pub(super) struct Trees(HashMap<PathBuf, Hash>);

impl Trees {
    /// Parses the index extensions that follow the entries.
    pub(super) fn parse(mut rest: &[u8]) -> Self {
        let mut trees = Self::default();
        while let Some((name, after)) = rest.split_first_chunk::<4>()
            && let Some((length, after)) = after.split_first_chunk::<4>()
            && let Some((content, after)) = after.split_at_checked(u32::from_be_bytes(*length) as usize)
        {
            if name == b"TREE" {
                trees.read(&mut { content }, Path::new(""), 0);
            }
            rest = after;
        }
        trees
    }

    fn read(&mut self, bytes: &mut &[u8], above: &Path, depth: usize) -> Option<()> {
        let name = split_until(bytes, 0)?;
        let entries: i64 = std::str::from_utf8(split_until(bytes, b' ')?).ok()?.parse().ok()?;
        let below: usize = std::str::from_utf8(split_until(bytes, b'\n')?).ok()?.parse().ok()?;
        let path = above.join(OsStr::from_bytes(name));
        if entries >= 0 {
            let (hash, rest) = bytes.split_first_chunk::<HASH>()?;
            self.0.insert(path.clone(), *hash);
            *bytes = rest;
        }
        for _ in 0..below {
            (depth < DEPTH).then_some(())?;
            self.read(bytes, &path, depth + 1)?;
        }
        Some(())
    }
}

/// Files in the last commit's directories that differ from the index.
#[derive(Default)]
pub(super) struct CommittedTree {
    files: HashMap<PathBuf, Hash>,
    /// Directories that are not compared because they are unchanged or could not be read.
    left_out: HashSet<PathBuf>,
    read: usize,
    /// Whether an object needed for the comparison could not be read, usually because it is packed.
    pub(super) unknown: bool,
}

impl CommittedTree {
    pub(super) fn for_commit(repository: &Repository, trees: &Trees) -> Self {
        let mut committed = Self::default();
        let root = repository.head().and_then(|commit| {
            let commit = read_object(repository, &commit, "commit")?;
            parse_hash(std::str::from_utf8(commit.strip_prefix(b"tree ")?.get(..HASH * 2)?).ok()?)
        });
        match root {
            // The branch has no commit yet.
            None if repository.is_unborn() => {}
            Some(root) => committed.compare(repository, trees, (PathBuf::new(), root), 0),
            // Staging a change removes the root tree from the cache until the next commit.
            None if trees.0.contains_key(Path::new("")) => drop(committed.left_out.insert(PathBuf::new())),
            None => committed.exclude(PathBuf::new()),
        }
        committed
    }

    fn exclude(&mut self, directory: PathBuf) {
        self.unknown = true;
        self.left_out.insert(directory);
    }

    fn compare(&mut self, repository: &Repository, trees: &Trees, (directory, hash): (PathBuf, Hash), depth: usize) {
        if trees.0.get(&directory) == Some(&hash) {
            self.left_out.insert(directory);
            return;
        }
        self.read += 1;
        let few = self.read <= TREES && depth < DEPTH;
        let Some(tree) = few.then(|| read_object(repository, &crate::text::hex(&hash), "tree")).flatten() else {
            return self.exclude(directory);
        };
        let mut rest = tree.as_slice();
        while let Some(mode) = split_until(&mut rest, b' ')
            && let Some(name) = split_until(&mut rest, 0)
            && let Some((hash, after)) = rest.split_first_chunk::<HASH>()
        {
            rest = after;
            let path = directory.join(OsStr::from_bytes(name));
            match mode {
                b"40000" => self.compare(repository, trees, (path, *hash), depth + 1),
                // Submodules are ignored.
                b"160000" => {}
                _ => drop(self.files.insert(path, *hash)),
            }
        }
    }

    /// Returns whether an indexed file is the same as in the last commit. Returns `true` if this is unknown.
    pub(super) fn has(&self, path: &Path, hash: &Hash) -> bool {
        self.files.get(path) == Some(hash) || path.ancestors().skip(1).any(|above| self.left_out.contains(above))
    }

    /// Returns the committed files that are missing from the index.
    pub(super) fn deleted_files<'a>(&'a self, index: &'a HashSet<&Path>) -> impl Iterator<Item = &'a Path> {
        self.files.keys().map(PathBuf::as_path).filter(|path| !index.contains(path))
    }
}

impl Repository {
    /// Returns whether the current branch has no commits yet.
    fn is_unborn(&self) -> bool {
        let Some(head) = one_line(&self.git.join("HEAD")) else { return false };
        let Some(name) = head.strip_prefix("ref: ").filter(|_| super::branch_from_head(&head).is_some()) else { return false };
        // The reftable format is not supported.
        !self.common.join("reftable").exists() && !self.common.join(name).exists() && self.packed_line(name).is_none()
    }

    /// Returns the full hash of the current commit, if it can be determined.
    fn head(&self) -> Option<String> {
        let head = one_line(&self.git.join("HEAD"))?;
        let whole = match head.strip_prefix("ref: ") {
            Some(name) => {
                super::branch_from_head(&head)?;
                one_line(&self.common.join(name)).or_else(|| self.packed_line(name))?
            }
            None => head,
        };
        parse_hash(&whole).map(|hash| crate::text::hex(&hash))
    }
}

/// Returns the content of a loose object, if it exists and is of the given kind.
fn read_object(repository: &Repository, name: &str, kind: &str) -> Option<Vec<u8>> {
    let (first, rest) = name.split_at_checked(2)?;
    let file = crate::sys::path::open_file(&repository.common.join("objects").join(first).join(rest)).ok()?;
    let mut bytes = Vec::new();
    ZlibDecoder::new(file).take(OBJECT_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let mut rest = bytes.as_slice();
    let head = split_until(&mut rest, 0)?;
    let is_whole = bytes.len() as u64 <= OBJECT_BYTES && head.starts_with(kind.as_bytes());
    is_whole.then(|| rest.to_vec())
}

/// Splits off the bytes before the first `end` byte and skips that byte.
fn split_until<'a>(bytes: &mut &'a [u8], end: u8) -> Option<&'a [u8]> {
    let at = bytes.iter().position(|byte| *byte == end)?;
    let (before, after) = bytes.split_at(at);
    *bytes = &after[1..];
    Some(before)
}

fn parse_hash(text: &str) -> Option<Hash> {
    let mut hash = [0; HASH];
    if text.len() != HASH * 2 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(hash)
}

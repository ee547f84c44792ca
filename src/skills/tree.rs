//! Finds and hashes a skill's files within limits. Symlinks that point outside the skill's boundary are not followed.

use std::collections::VecDeque;
use std::path::Path;

/// Maximum number of files in a skill.
const MAX_FILES: usize = 200;
/// Maximum number of entries in a skill, including directories.
const MAX_ENTRIES: usize = 1_000;
/// Maximum depth of nested directories in a skill.
const MAX_DEPTH: usize = 6;
/// Maximum size of a file to hash, in bytes.
const FILE_BYTES: u64 = 16 << 20;
/// Maximum total size of hashed files in a skill, in bytes.
const TREE_BYTES: u64 = 32 << 20;
/// Version control directories, which are never part of a skill.
const SKIPPED: &[&str] = &[".git", ".hg", ".svn"];

/// File in a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PinnedFile {
    /// Path relative to the skill's directory.
    pub path: String,
    pub bytes: u64,
    /// Hash of the content; empty if the file was only listed.
    pub hash: String,
}

/// Files in a skill, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SkillTree {
    pub files: Vec<PinnedFile>,
    /// Entries that are not part of the skill, each with the reason why.
    pub left_out: Vec<(String, String)>,
}

/// Level of detail at which files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Listed,
    Hashed,
}

/// Returns the files below a directory, whose own path must not contain symlinks. Files whose target is outside
/// `boundary` are listed in `left_out`.
///
/// # Errors
/// Returns a message if the directory is too large or cannot be read.
pub(crate) fn read_tree(real: &Path, boundary: &Path, detail: Detail) -> Result<SkillTree, String> {
    let mut tree = SkillTree::default();
    let (mut entries, mut total) = (0, 0);
    let mut open = VecDeque::from([(real.to_owned(), String::new(), 0)]);
    while let Some((directory, below, depth)) = open.pop_front() {
        let found = crate::sys::path::entries(&directory).map_err(|error| format!("cannot read the files: {error}"))?;
        let mut names: Vec<_> = found.take(MAX_ENTRIES + 1).filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        names.sort();
        for name in names {
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(format!("more than {MAX_ENTRIES} entries"));
            }
            let path = directory.join(&name);
            let Some(name) = name.to_str().filter(|name| !name.chars().any(char::is_control)) else {
                let shown = format!("{below}{}", name.to_string_lossy().escape_debug());
                tree.left_out.push((shown, "the name is not plain text".to_owned()));
                continue;
            };
            let shown = format!("{below}{name}");
            let Ok(metadata) = path.symlink_metadata() else { continue };
            if metadata.is_dir() {
                if SKIPPED.contains(&name) {
                    continue;
                }
                if depth >= MAX_DEPTH {
                    return Err(format!("directories more than {MAX_DEPTH} levels deep"));
                }
                open.push_back((path, format!("{shown}/"), depth + 1));
                continue;
            }
            match file(&path, shown.clone(), boundary, detail) {
                Ok(file) => {
                    total += if detail == Detail::Hashed { file.bytes } else { 0 };
                    tree.files.push(file);
                }
                Err(why) => tree.left_out.push((shown, why)),
            }
            if tree.files.len() > MAX_FILES {
                return Err(format!("more than {MAX_FILES} files"));
            }
            if total > TREE_BYTES {
                return Err(format!("the files are larger than {} MB in total", TREE_BYTES >> 20));
            }
        }
    }
    tree.files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(tree)
}

/// Returns a regular file, or the reason why the path is not part of the skill.
fn file(path: &Path, shown: String, boundary: &Path, detail: Detail) -> Result<PinnedFile, String> {
    let real = path.canonicalize().map_err(|_| "a dangling symlink, or not readable".to_owned())?;
    if !real.starts_with(boundary) {
        return Err(format!("a symlink to `{}`, outside the skill's folder", real.display()));
    }
    let metadata = real.metadata().map_err(|error| format!("cannot be read: {error}"))?;
    if metadata.is_dir() {
        return Err("a symlink to a directory, which is not followed".to_owned());
    }
    if !metadata.is_file() {
        return Err("not a file".to_owned());
    }
    let bytes = metadata.len();
    let hash = match detail {
        Detail::Listed => String::new(),
        Detail::Hashed => hash(&real)?,
    };
    Ok(PinnedFile { path: shown, bytes, hash })
}

/// Returns the hash of a file's content. Fails if the path contains symlinks.
fn hash(real: &Path) -> Result<String, String> {
    match crate::sys::file::read(real, FILE_BYTES) {
        Ok(content) => Ok(blake3::hash(&content).to_hex().to_string()),
        Err(crate::sys::file::ReadError::TooLarge { .. }) => Err(format!("larger than {} MB", FILE_BYTES >> 20)),
        Err(crate::sys::file::ReadError::Io(error)) => Err(format!("cannot be read: {error}")),
    }
}

/// Describes the first difference between a skill's current files and their pinned hashes, if any.
pub(super) fn first_change(real: &Path, boundary: &Path, pinned: &[PinnedFile]) -> Option<String> {
    let now = match read_tree(real, boundary, Detail::Hashed) {
        Ok(tree) => tree.files,
        Err(why) => return Some(why),
    };
    let find = |files: &[PinnedFile], path: &str| files.iter().find(|file| file.path == path).cloned();
    let changed = pinned.iter().find_map(|file| match find(&now, &file.path) {
        None => Some(format!("`{}` was removed", file.path)),
        Some(other) if other.hash != file.hash => Some(format!("`{}` changed", file.path)),
        Some(_) => None,
    });
    changed.or_else(|| {
        let new = now.iter().find(|file| find(pinned, &file.path).is_none())?;
        Some(format!("`{}` is new", new.path))
    })
}

/// Returns whether a file still has its pinned content. Returns `false` if the file cannot be read.
pub(super) fn is_unchanged(real: &Path, pinned: &PinnedFile) -> bool {
    hash(real).is_ok_and(|now| now == pinned.hash)
}

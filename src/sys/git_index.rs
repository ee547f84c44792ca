//! Reads the entries of git's index, versions 2 to 4: the tracked files with their recorded metadata.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Hash length in bytes. Indexes with longer hashes are not supported.
const HASH: usize = 20;
/// Length in bytes of the ten numbers that precede the hash in an entry.
const STATUS: usize = 40;
/// Number of bytes in an entry before its path, not counting extended flags.
pub(crate) const FIXED: usize = STATUS + HASH + 2;
/// Flag bits that contain the length of the path. All of them are set if the path is too long.
const NAME_LENGTH: u16 = 0xfff;
const IS_EXTENDED: u16 = 0x4000;

/// An entry of the index.
pub(crate) struct IndexEntry<'a> {
    /// Path relative to the repository, as stored in the index. It need not refer to a file, and it may lead outside
    /// the repository.
    pub path: &'a Path,
    pub hash: [u8; HASH],
    pub flags: u16,
    /// Extended flags, or 0 if the entry has none.
    pub extended: u16,
    status: &'a [u8],
}

impl IndexEntry<'_> {
    /// Returns the status number with this index: 2 and 3 are the modification time, 6 is the mode, and 9 is the size.
    pub(crate) fn status(&self, at: usize) -> u32 {
        self.status.get(at * 4..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }
}

/// Passes each entry of an index to `each` and returns the data that follows the entries. Returns `None`, possibly
/// after some entries, if the index is split, has longer hashes or is invalid.
pub(crate) fn read_index(index: &[u8], mut each: impl FnMut(&IndexEntry<'_>)) -> Option<&[u8]> {
    let mut rest = index.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut before = Vec::new();
    for _ in 0..count {
        let (fixed, after) = rest.split_at_checked(FIXED)?;
        let (status, hash_and_flags) = fixed.split_at(STATUS);
        let flags = u16::from_be_bytes(*hash_and_flags.last_chunk()?);
        let is_extended = version > 2 && flags & IS_EXTENDED != 0;
        let extended = if is_extended { u16::from_be_bytes(*after.first_chunk()?) } else { 0 };
        let own = if is_extended { 2 } else { 0 };
        let mut name = after.get(own..)?;
        if version == 4 {
            // The entry contains only the part of the name that differs from the previous name.
            let drop = offset(&mut name)?;
            before.truncate(before.len().checked_sub(drop)?);
        } else {
            before.clear();
        }
        let end = name.iter().position(|byte| *byte == 0)?;
        before.extend_from_slice(&name[..end]);
        // In an index with longer hashes, everything is at a different offset.
        if usize::from(flags & NAME_LENGTH) != before.len().min(NAME_LENGTH.into()) {
            return None;
        }
        let padding = if version == 4 { 1 } else { 8 - (FIXED + own + end) % 8 };
        rest = name.get(end + padding..)?;
        each(&IndexEntry {
            path: Path::new(OsStr::from_bytes(&before)),
            hash: *hash_and_flags.first_chunk()?,
            flags,
            extended,
            status,
        });
    }
    (!rest.starts_with(b"link")).then_some(rest)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_be_bytes(*first))
}

/// Decodes a variable-length offset with seven bits per byte. To make encodings unique, each continuation byte adds one
/// before the next shift.
fn offset(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value = value.checked_shl(7)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(hash: usize, name: &str) -> Vec<u8> {
        let mut entry = vec![0x11; STATUS + hash];
        entry.extend((name.len() as u16).to_be_bytes());
        entry.extend(name.as_bytes());
        entry.resize(entry.len() + 8 - entry.len() % 8, 0);
        entry
    }

    fn paths(hash: usize) -> Option<Vec<String>> {
        let names = ["build/a.txt", "src/b.rs"];
        let entries = names.map(|name| entry(hash, name)).concat();
        let index = [b"DIRC".as_slice(), &2_u32.to_be_bytes(), &(names.len() as u32).to_be_bytes(), &entries].concat();
        let mut found = Vec::new();
        read_index(&index, |entry| found.push(entry.path.display().to_string())).map(|_| found)
    }

    #[test]
    fn index_entries_are_listed_and_an_index_with_longer_hashes_is_not_misread() {
        assert_eq!(paths(HASH), Some(vec!["build/a.txt".to_owned(), "src/b.rs".to_owned()]));
        assert_eq!(paths(32), None);
    }
}

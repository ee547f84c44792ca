//! Unpacks plugin archives within limits. `.tar`, `.tar.gz` and `.zip` files are recognized by their first bytes.

use super::copy::{MAX_ENTRIES, TOTAL_BYTES};
use super::unpacked::Unpacked;
use crate::protocol::Problem;
use std::io::{Cursor, Read};
use std::path::Path;
use tar::EntryType;

/// Maximum size of an archive, in bytes.
pub(super) const ARCHIVE_BYTES: u64 = 64 << 20;
/// Number of bytes allowed for the headers and padding of each entry in an unpacked tar file.
const ENTRY_BYTES: u64 = 4 << 10;
const GZIP: &[u8] = b"\x1f\x8b";
const ZIP: &[u8] = b"PK\x03\x04";
/// Offset and content of the magic number in a tar file.
const TAR: (usize, &[u8]) = (257, b"ustar");
/// Signature of the end record in a zip file, the record's length without a comment, and the offset of the entry count
/// within it.
const ZIP_END: &[u8] = b"PK\x05\x06";
const ZIP_END_BYTES: usize = 22;
const ZIP_COUNT_AT: usize = 10;
/// Mode bits that determine the type of an entry, and those that make a file executable.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;
const EXECUTABLE: u32 = 0o111;

/// Unpacks an archive into an empty folder.
///
/// # Errors
/// Returns an error if the archive is damaged, contains entries other than files and folders, contains names that clash
/// or that point outside the folder, or exceeds a limit.
pub(super) fn unpack(bytes: &[u8], root: &Path) -> Result<(), Problem> {
    let mut unpacked = Unpacked::new(root);
    if bytes.starts_with(ZIP) {
        return unpack_zip(bytes, &mut unpacked);
    }
    if bytes.starts_with(GZIP) {
        return unpack_tar(&mut flate2::read::MultiGzDecoder::new(bytes), &mut unpacked);
    }
    if bytes.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
        return unpack_tar(&mut &*bytes, &mut unpacked);
    }
    Err(Problem::new("the file is not a `.tar.gz`, `.tar` or `.zip` archive"))
}

fn unpack_tar(content: &mut dyn Read, unpacked: &mut Unpacked<'_>) -> Result<(), Problem> {
    let damaged = |error: std::io::Error| Problem::new("the archive is damaged").because(error);
    // A small archive can unpack to a huge stream.
    let limited = content.take(TOTAL_BYTES + MAX_ENTRIES as u64 * ENTRY_BYTES);
    let mut archive = tar::Archive::new(limited);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let path = entry.path_bytes().into_owned();
        match entry.header().entry_type() {
            // Metadata about the whole archive, such as the commit of `git archive`.
            EntryType::XGlobalHeader => {}
            EntryType::Directory => unpacked.add_folder(&path)?,
            EntryType::Regular | EntryType::Continuous => {
                let is_program = entry.header().mode().map_err(damaged)? & EXECUTABLE != 0;
                unpacked.add_file(&path, is_program, &mut entry)?;
            }
            EntryType::Symlink | EntryType::Link => return Err(refused(&path, "a link")),
            _ => return Err(refused(&path, "not a file")),
        }
    }
    Ok(())
}

fn unpack_zip(bytes: &[u8], unpacked: &mut Unpacked<'_>) -> Result<(), Problem> {
    let damaged = |error: zip::result::ZipError| Problem::new("the archive is damaged").because(error);
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    // The library lists each name only once, which would hide one of two files.
    if entry_count(bytes) != Some(archive.len()) {
        return Err(Problem::new("the archive contains a name twice, or its list of files does not match its end record"));
    }
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number).map_err(damaged)?;
        let path = entry.name_raw().to_vec();
        let mode = entry.unix_mode().unwrap_or_default();
        match mode & KIND {
            0 | REGULAR | FOLDER => {}
            SYMLINK => return Err(refused(&path, "a link")),
            _ => return Err(refused(&path, "not a file")),
        }
        if entry.encrypted() {
            return Err(refused(&path, "encrypted"));
        }
        if path.ends_with(b"/") {
            unpacked.add_folder(&path)?;
        } else {
            unpacked.add_file(&path, mode & EXECUTABLE != 0, &mut entry)?;
        }
    }
    Ok(())
}

/// Returns the number of entries stated in the end record of a zip file.
fn entry_count(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(ZIP_END_BYTES)?;
    let at = (0..=last).rev().take(usize::from(u16::MAX) + 1).find(|at| bytes[*at..].starts_with(ZIP_END))?;
    let count = bytes.get(at + ZIP_COUNT_AT..at + ZIP_COUNT_AT + 2)?;
    Some(usize::from(u16::from_le_bytes([count[0], count[1]])))
}

fn refused(path: &[u8], what: &str) -> Problem {
    let shown = String::from_utf8_lossy(path).escape_debug().to_string();
    Problem::new(format!("`{shown}` is {what}")).because("a plugin can contain only files and folders")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    /// Function that adds entries to an archive.
    type Build<'a> = dyn Fn(&mut tar::Builder<Vec<u8>>) + 'a;

    fn tar_with(build: &Build<'_>) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        build(&mut builder);
        builder.into_inner().unwrap()
    }

    /// Adds an entry whose name the builder would reject.
    fn add(builder: &mut tar::Builder<Vec<u8>>, name: &[u8], kind: EntryType, content: &[u8]) {
        let mut header = tar::Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        builder.append(&header, content).unwrap();
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zip_with(names: &[(&str, u32, &str)]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, mode, content) in names {
            let options = zip::write::SimpleFileOptions::default().unix_permissions(*mode);
            if mode & KIND == SYMLINK {
                writer.add_symlink(*name, *content, options).unwrap();
            } else {
                writer.start_file(*name, options).unwrap();
                writer.write_all(content.as_bytes()).unwrap();
            }
        }
        writer.finish().unwrap().into_inner()
    }

    fn unpacked(bytes: &[u8]) -> Result<tempfile::TempDir, String> {
        let root = tempfile::TempDir::new().unwrap();
        unpack(bytes, root.path()).map(|()| root).map_err(|problem| problem.text())
    }

    #[test]
    fn files_are_unpacked_from_each_format() {
        let tar = tar_with(&|builder| {
            add(builder, b"./demo/", EntryType::Directory, b"");
            add(builder, b"./demo/run.sh", EntryType::Regular, b"echo\n");
            add(builder, b"demo/.git/config", EntryType::Regular, b"x");
        });
        for bytes in [gzip(&tar), tar.clone(), zip_with(&[("demo/run.sh", 0o755, "echo\n"), ("demo/.git/config", 0o644, "x")])] {
            let root = unpacked(&bytes).unwrap();
            assert_eq!(fs::read_to_string(root.path().join("demo/run.sh")).unwrap(), "echo\n");
            assert!(!root.path().join("demo/.git").exists());
        }
    }

    #[test]
    fn entries_with_outside_paths_or_special_types_are_rejected() {
        for (name, kind, why) in [
            (&b"../x"[..], EntryType::Regular, "leads outside"),
            (b"a/../../x", EntryType::Regular, "leads outside"),
            (b"/etc/x", EntryType::Regular, "leads outside"),
            (b"a\\..\\x", EntryType::Regular, "not plain text"),
            (b"a\x1b[31m", EntryType::Regular, "not plain text"),
            (b"a\xff", EntryType::Regular, "not plain text"),
            (b"./", EntryType::Regular, "not a file path"),
            (b"link", EntryType::Symlink, "a link"),
            (b"link", EntryType::Link, "a link"),
            (b"pipe", EntryType::Fifo, "not a file"),
            (b"disk", EntryType::Block, "not a file"),
            (b"terminal", EntryType::Char, "not a file"),
        ] {
            let told = unpacked(&gzip(&tar_with(&|builder| add(builder, name, kind, b"")))).unwrap_err();
            assert!(told.contains(why) && !told.contains('\u{1b}'), "{name:?}: {told}");
        }
        for (names, why) in [
            (&[("../x", 0o644, "")][..], "leads outside"),
            (&[("/x", 0o644, "")], "leads outside"),
            (&[("x", SYMLINK | 0o777, "/etc")], "a link"),
        ] {
            let told = unpacked(&zip_with(names)).unwrap_err();
            assert!(told.contains(why), "{names:?}: {told}");
        }
    }

    #[test]
    fn conflicting_names_are_rejected() {
        for (names, why) in [
            (["a", "a"], "`a` appears twice"),
            (["a/x", "A/y"], "only in case"),
            (["a", "a/x"], "both a file and a folder"),
            (["a/x", "./a//x"], "appears twice"),
        ] {
            let told = unpacked(&tar_with(&|builder| {
                for name in names {
                    add(builder, name.as_bytes(), EntryType::Regular, b"");
                }
            }));
            assert!(told.as_ref().unwrap_err().contains(why), "{names:?}: {told:?}");
        }
        // Two names of the same length, one of which is then replaced by the other.
        let mut bytes = zip_with(&[("first", 0o644, "1"), ("other", 0o644, "2")]);
        for at in 0..bytes.len() - 5 {
            if &bytes[at..at + 5] == b"other" {
                bytes[at..at + 5].copy_from_slice(b"first");
            }
        }
        let told = unpacked(&bytes).unwrap_err();
        assert!(told.contains("twice") || told.contains("damaged"), "{told}");
    }

    #[test]
    fn oversized_and_damaged_archives_are_rejected() {
        let zeros = vec![0; 20 << 20];
        let huge = gzip(&tar_with(&|builder| add(builder, b"zeros", EntryType::Regular, &zeros)));
        assert!(unpacked(&huge).unwrap_err().contains("larger than 16 MB"));
        let many = gzip(&tar_with(&|builder| {
            for number in 0..6 {
                add(builder, format!("zeros-{number}").as_bytes(), EntryType::Regular, &zeros[..15 << 20]);
            }
        }));
        assert!(unpacked(&many).unwrap_err().contains("larger than 64 MB in total"));
        let text = "0".repeat(20 << 20);
        assert!(unpacked(&zip_with(&[("zeros", 0o644, &text)])).unwrap_err().contains("larger than 16 MB"));
        let tar = tar_with(&|builder| add(builder, b"a", EntryType::Regular, &zeros[..10_000]));
        for bytes in [&gzip(&tar)[..30], &tar[..2_000], &b"PK\x03\x04 and more"[..], b"", b"\x7fELF"] {
            let told = unpacked(bytes).unwrap_err();
            assert!(["damaged", "cannot read", "not a `.tar.gz`"].iter().any(|why| told.contains(why)), "{told}");
        }
    }
}

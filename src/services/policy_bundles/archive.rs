//! Reader for policy bundles, which are gzip-compressed tar archives. It enforces limits and writes no files.

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;

/// Maximum total uncompressed size of the files in bytes.
const TOTAL_BYTES: u64 = 8 << 20;
/// Maximum number of archive entries.
const ENTRIES: usize = 1_000;
/// Block size of a tar archive in bytes.
const BLOCK: usize = 512;
/// Maximum length of a long file name in bytes.
const NAME_BYTES: u64 = 4_096;

/// Files in an archive, by name without a leading `/` or `./`.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Reads the files in a compressed archive.
///
/// # Errors
/// Returns an error if the archive is damaged or too large, or if it contains links, other special files, or names that
/// lead outside the archive.
pub(super) fn read(compressed: &[u8]) -> Result<Files, String> {
    // Read one byte more than the limit, to distinguish a larger archive from one at the limit. The limit includes
    // headers.
    let most = TOTAL_BYTES + (ENTRIES * 2 * BLOCK) as u64;
    let mut tar = Vec::new();
    GzDecoder::new(compressed)
        .take(most + 1)
        .read_to_end(&mut tar)
        .map_err(|error| format!("not a gzip-compressed archive: {error}"))?;
    if tar.len() as u64 > most {
        return Err(format!("larger than {TOTAL_BYTES} bytes uncompressed"));
    }
    let (mut files, mut rest, mut long_name, mut entries) = (Files::new(), tar.as_slice(), None, 0);
    loop {
        let Some((header, after)) = rest.split_at_checked(BLOCK) else { return Err("truncated archive".to_owned()) };
        if header.iter().all(|byte| *byte == 0) {
            return Ok(files);
        }
        entries += 1;
        if entries > ENTRIES {
            return Err(format!("more than {ENTRIES} entries"));
        }
        let header = TarHeader::parse(header)?;
        let size = usize::try_from(header.size).map_err(|_| "an entry is too large".to_owned())?;
        let padded = size.checked_next_multiple_of(BLOCK).ok_or("an entry is too large")?;
        let content = after.get(..size).ok_or("truncated archive")?;
        rest = after.get(padded..).ok_or("truncated archive")?;
        match header.kind {
            b'0' | 0 => {
                let name = checked_name(&long_name.take().unwrap_or(header.name))?;
                if files.insert(name.clone(), content.to_vec()).is_some() {
                    return Err(format!("`{}` appears twice", name.escape_debug()));
                }
            }
            b'5' => long_name = None,
            b'L' if header.size <= NAME_BYTES => {
                long_name = Some(String::from_utf8_lossy(content).trim_end_matches('\0').to_owned());
            }
            // Attributes of the next entry. Only a long name is relevant.
            b'x' => long_name = pax_path(content).or(long_name),
            b'g' => {}
            _ => return Err(format!("`{}` is not a regular file", header.name.escape_debug())),
        }
    }
}

struct TarHeader {
    name: String,
    size: u64,
    kind: u8,
}

impl TarHeader {
    fn parse(block: &[u8]) -> Result<Self, String> {
        let text = |from: usize, to: usize| {
            let field = block.get(from..to).unwrap_or_default();
            String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
        };
        let octal = |from, to| u64::from_str_radix(text(from, to).trim(), 8).map_err(|_| "invalid number in a header".to_owned());
        let sum: u64 =
            block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) }).sum();
        if octal(148, 156)? != sum {
            return Err("the checksum of a header is wrong".to_owned());
        }
        let (name, prefix) = (text(0, 100), text(345, 500));
        let is_ustar = block.get(257..262) == Some(b"ustar");
        let name = if is_ustar && !prefix.is_empty() { format!("{prefix}/{name}") } else { name };
        Ok(Self { name, size: octal(124, 136)?, kind: block.get(156).copied().unwrap_or_default() })
    }
}

/// Returns the `path` given in extended header attributes, which have the form `30 path=a/b`.
fn pax_path(content: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(content);
    text.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("path=").map(str::to_owned))
}

fn checked_name(given: &str) -> Result<String, String> {
    let name = given.trim_start_matches("./").trim_start_matches('/');
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\\');
    if name.split('/').all(is_plain) && !name.chars().any(char::is_control) {
        return Ok(name.to_owned());
    }
    Err(format!("invalid name `{}`", given.escape_debug()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    /// Creates an archive from entries that consist of a name, a type and the content.
    pub(in super::super) fn archive(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (name, kind, content) in entries {
            let mut block = [0_u8; BLOCK];
            block[..name.len()].copy_from_slice(name.as_bytes());
            block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
            block[156] = *kind;
            block[257..262].copy_from_slice(b"ustar");
            block[148..156].copy_from_slice(b"        ");
            let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
            block[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
            block[154] = 0;
            tar.extend_from_slice(&block);
            tar.extend_from_slice(content);
            tar.resize(tar.len().next_multiple_of(BLOCK), 0);
        }
        tar.resize(tar.len() + 2 * BLOCK, 0);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&tar).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn archive_files_are_found_by_name() {
        let long = "a/".repeat(60) + "policy.toml";
        let pax = format!("{} path={long}\n", long.len() + 10);
        let files = read(&archive(&[
            ("./dir", b'5', b""),
            ("/policy.toml", b'0', b"one"),
            ("./dir/x", 0, &[7; 600]),
            ("x", b'x', pax.as_bytes()),
            ("short", b'0', b"long"),
        ]));
        let files = files.unwrap();
        assert_eq!(files.keys().map(String::as_str).collect::<Vec<_>>(), [long.as_str(), "dir/x", "policy.toml"]);
        assert_eq!((files["policy.toml"].as_slice(), files["dir/x"].len()), (b"one".as_slice(), 600));
    }

    #[test]
    fn hostile_archives_are_rejected() {
        for (name, entries, why) in [
            ("a path that leaves", vec![("../policy.toml", b'0', b"x".as_slice())], "invalid name"),
            ("an empty part", vec![("a//b", b'0', b"x")], "invalid name"),
            ("a symbolic link", vec![("policy.toml", b'2', b"")], "not a regular file"),
            ("a hard link", vec![("policy.toml", b'1', b"")], "not a regular file"),
            ("a device", vec![("policy.toml", b'3', b"")], "not a regular file"),
            ("a file twice", vec![("policy.toml", b'0', b"x"), ("./policy.toml", b'0', b"y")], "appears twice"),
        ] {
            assert!(read(&archive(&entries)).unwrap_err().contains(why), "{name}");
        }
        let whole = archive(&[("policy.toml", b'0', b"content")]);
        assert!(read(&whole[..whole.len() / 2]).is_err(), "half an archive");
        assert!(read(b"not gzip").is_err());
        let huge = vec![0_u8; usize::try_from(TOTAL_BYTES).unwrap() + ENTRIES * 2 * BLOCK + 1];
        assert!(read(&archive(&[("policy.toml", b'0', &huge)])).unwrap_err().contains("larger than"));
    }
}

//! Access to the pages of a database, whatever the state of its files.

use crate::store::quarantine::with_suffix;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Page size in bytes that aye uses for its databases.
pub(super) const USUAL_SIZE: usize = 4096;
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Magic number of the write-ahead log. The lowest bit of the actual value determines the byte order of the checksums.
const LOG_MAGIC: u32 = 0x377f_0682;
const INTERIOR: u8 = 0x05;
const LEAF: u8 = 0x0d;
/// Size in bytes of the database header, which precedes the contents of the first page.
const FILE_HEADER: usize = 100;

pub(super) struct Pages {
    main: Option<File>,
    log: Option<File>,
    /// Offset in the write-ahead log of the latest version of each page that it contains.
    in_log: HashMap<u32, u64>,
    pub size: usize,
    pub count: u32,
}

impl Pages {
    /// Opens the files, or returns `None` if neither of them is readable. Without a page size, uses the size given in
    /// the header.
    pub(crate) fn open(path: &Path, size: Option<usize>) -> Option<Self> {
        let file = |path: &Path| File::open(path).ok().filter(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()));
        let mut main = file(path);
        let mut log = file(&with_suffix(path, "-wal"));
        let mut header = [0; FILE_HEADER];
        let told = main.as_mut().and_then(|main| {
            main.read_exact(&mut header).ok()?;
            match u16::from_be_bytes([header[16], header[17]]) {
                1 => Some(1 << 16),
                size => Some(usize::from(size)),
            }
        });
        let size = size.or(told).filter(|size| size.is_power_of_two() && (512..=1 << 16).contains(size)).unwrap_or(USUAL_SIZE);
        let bytes = main.as_ref().and_then(|main| main.metadata().ok()).map_or(0, |metadata| metadata.len());
        let in_log = log.as_mut().and_then(|log| committed_pages(log, size)).unwrap_or_default();
        let count = (bytes / size as u64).max(in_log.keys().copied().max().unwrap_or(0).into());
        (main.is_some() || log.is_some()).then(|| Self {
            main,
            log,
            in_log,
            size,
            count: u32::try_from(count).unwrap_or(u32::MAX),
        })
    }

    /// Reads a page by its number, starting at 1. Returns `None` if it cannot be read.
    pub(crate) fn read(&mut self, number: u32) -> Option<Vec<u8>> {
        let (file, at) = match (self.in_log.get(&number), &mut self.log) {
            (Some(at), Some(log)) => (log, *at),
            _ => (self.main.as_mut()?, u64::from(number.checked_sub(1)?) * self.size as u64),
        };
        let mut page = vec![0; self.size];
        file.seek(SeekFrom::Start(at)).ok()?;
        file.read_exact(&mut page).ok()?;
        Some(page)
    }

    /// Returns the leaf pages in use, and whether all trees are intact. If the trees are intact, these are the leaves
    /// of the trees. Otherwise, they are all leaves that are not known to be free.
    pub(crate) fn leaves(&mut self, roots: &[u32]) -> (Vec<u32>, bool) {
        let mut found = HashSet::new();
        let whole = !roots.is_empty() && roots.iter().all(|root| self.walk(*root, &mut found));
        if whole {
            let mut leaves: Vec<u32> = found.into_iter().collect();
            leaves.sort_unstable();
            return (leaves, true);
        }
        let free = self.free();
        ((1..=self.count).filter(|number| !free.contains(number)).collect(), false)
    }

    /// Adds the leaves of a tree to `leaves`. Returns whether the tree is intact.
    fn walk(&mut self, root: u32, leaves: &mut HashSet<u32>) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![root];
        while let Some(number) = open.pop() {
            if !seen.insert(number) || number == 0 || number > self.count {
                return false;
            }
            let Some(page) = self.read(number) else { return false };
            let start = page_offset(number);
            match page[start] {
                LEAF => {
                    if !leaves.insert(number) {
                        return false;
                    }
                }
                INTERIOR => {
                    let Some(right) = read_u32(&page, start + 8) else { return false };
                    open.push(right);
                    for at in cells(&page, start, start + 12) {
                        let Some(child) = read_u32(&page, at) else { return false };
                        open.push(child);
                    }
                }
                _ => return false,
            }
        }
        true
    }

    /// Returns the pages that the readable part of the free list contains.
    fn free(&mut self) -> HashSet<u32> {
        let mut free = HashSet::new();
        let mut trunk = self.read(1).and_then(|page| read_u32(&page, 32)).unwrap_or(0);
        while trunk > 1 && trunk <= self.count && free.insert(trunk) {
            let Some(page) = self.read(trunk) else { break };
            let count = read_u32(&page, 4).unwrap_or(0) as usize;
            let most = self.size / 4 - 2;
            if count > most {
                break;
            }
            free.extend((0..count).filter_map(|index| read_u32(&page, 8 + 4 * index)));
            trunk = read_u32(&page, 0).unwrap_or(0);
        }
        free
    }
}

/// Returns the offsets of the rows in a table leaf, or an empty list for any other page.
pub(super) fn rows(page: &[u8], number: u32) -> Vec<usize> {
    let start = page_offset(number);
    if page.get(start) == Some(&LEAF) { cells(page, start, start + 8) } else { Vec::new() }
}

fn page_offset(number: u32) -> usize {
    if number == 1 { FILE_HEADER } else { 0 }
}

/// Returns the cell offsets given in a page's cell pointer array.
fn cells(page: &[u8], start: usize, list: usize) -> Vec<usize> {
    let two = |at: usize| page.get(at..at + 2).map(|bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])));
    let count = two(start + 3).unwrap_or(0);
    let places = (0..count).map_while(|index| two(list + 2 * index));
    places.filter(|at| (list..page.len()).contains(at)).collect()
}

pub(super) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

/// Returns the offset in the log of each committed page. Stops at the first frame whose checksum is wrong.
fn committed_pages(log: &mut File, size: usize) -> Option<HashMap<u32, u64>> {
    let mut header = [0; LOG_HEADER];
    log.read_exact(&mut header).ok()?;
    let magic = read_u32(&header, 0)?;
    if magic & !1 != LOG_MAGIC || read_u32(&header, 8)? as usize != size {
        return None;
    }
    let big = magic & 1 == 1;
    let mut sum = checksum((0, 0), &header[..24], big);
    if (read_u32(&header, 24)?, read_u32(&header, 28)?) != sum {
        return None;
    }
    let mut reader = std::io::BufReader::with_capacity(1 << 20, log);
    let (mut pages, mut open) = (HashMap::new(), Vec::new());
    let mut frame = vec![0; FRAME_HEADER + size];
    let mut at = LOG_HEADER as u64;
    while reader.read_exact(&mut frame).is_ok() {
        sum = checksum(checksum(sum, &frame[..8], big), &frame[FRAME_HEADER..], big);
        if frame[8..16] != header[16..24] || (read_u32(&frame, 16)?, read_u32(&frame, 20)?) != sum {
            break;
        }
        open.push((read_u32(&frame, 0)?, at + FRAME_HEADER as u64));
        if read_u32(&frame, 4)? != 0 {
            pages.extend(open.drain(..));
        }
        at += frame.len() as u64;
    }
    Some(pages)
}

fn checksum((mut one, mut two): (u32, u32), bytes: &[u8], big: bool) -> (u32, u32) {
    let read = |bytes: &[u8]| {
        let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    for pair in bytes.chunks_exact(8) {
        one = one.wrapping_add(read(&pair[..4])).wrapping_add(two);
        two = two.wrapping_add(read(&pair[4..])).wrapping_add(one);
    }
    (one, two)
}

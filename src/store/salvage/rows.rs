//! Parsing of table rows from raw pages, which includes detecting the table to which a row belongs.

use super::pages::{Pages, read_u32};

/// Maximum size of a row in bytes.
const MAX_BYTES: u64 = 1 << 30;
const MAX_COLUMNS: usize = 16;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum CellValue {
    Null,
    Int(i64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreTable {
    Sessions,
    Records,
    Packed,
    Decisions,
    Outbox,
}

pub(super) struct Row {
    pub key: i64,
    pub values: Vec<CellValue>,
    /// Whether the end of the row could not be read.
    pub is_cut: bool,
}

/// Header of a row, which is parsed before the rest of the row is read.
pub(super) struct RowHead {
    key: i64,
    pub table: StoreTable,
    types: Vec<u64>,
    /// Offset within the row at which the values start.
    body: usize,
    bytes: usize,
    /// Offset and length of the portion of the row stored in the leaf page itself.
    local: (usize, usize),
}

impl RowHead {
    /// Parses a row header. Returns `None` if the row cannot belong to any of the store's tables.
    pub(crate) fn read(page: &[u8], at: usize) -> Option<Self> {
        let mut rest = page.get(at..)?;
        let bytes = read_varint(&mut rest)?;
        let key = read_varint(&mut rest)?.cast_signed();
        if bytes > MAX_BYTES {
            return None;
        }
        let bytes = usize::try_from(bytes).ok()?;
        let start = page.len() - rest.len();
        let length = local_bytes(bytes, page.len());
        let local = page.get(start..start + length)?;
        let mut header = local;
        let body = usize::try_from(read_varint(&mut header)?).ok()?;
        let mut header = local.get(local.len() - header.len()..body)?;
        let mut types = Vec::new();
        while !header.is_empty() && types.len() <= MAX_COLUMNS {
            types.push(read_varint(&mut header)?);
        }
        let table = table_for_types(&types)?;
        Some(Self { key, table, types, body, bytes, local: (start, length) })
    }

    /// Reads the whole row, including any overflow pages.
    pub(crate) fn row(self, page: &[u8], pages: &mut Pages) -> Option<Row> {
        let (start, length) = self.local;
        let mut bytes = page[start..start + length].to_vec();
        let mut next = if bytes.len() < self.bytes { read_u32(page, start + length)? } else { 0 };
        // Each page adds bytes, so the loop ends however the pages are linked.
        while bytes.len() < self.bytes && (2..=pages.count).contains(&next) {
            let Some(more) = pages.read(next) else { break };
            next = read_u32(&more, 0)?;
            bytes.extend_from_slice(&more[4..more.len().min(4 + self.bytes - bytes.len())]);
        }
        let is_cut = bytes.len() < self.bytes;
        let mut rest = bytes.get(self.body..)?;
        let values = self.types.iter().map(|kind| value(*kind, &mut rest)).collect::<Option<Vec<_>>>()?;
        (is_cut || rest.is_empty()).then_some(Row { key: self.key, values, is_cut })
    }
}

/// Returns the name and root page found in a schema row. The root page is 0 for anything that is not a table.
pub(super) fn parse_schema_row(page: &[u8], at: usize) -> Option<(String, u32)> {
    let mut rest = page.get(at..)?;
    let bytes = usize::try_from(read_varint(&mut rest)?).ok()?;
    read_varint(&mut rest)?;
    let local = rest.get(..local_bytes(bytes, page.len()))?;
    let mut header = local;
    let body = usize::try_from(read_varint(&mut header)?).ok()?;
    let mut header = local.get(local.len() - header.len()..body)?;
    let mut values = local.get(body..)?;
    let mut next = || read_varint(&mut header).and_then(|kind| value(kind, &mut values));
    let (kind, name, _, root) = (next()?, next()?, next()?, next()?);
    match (kind, name, root) {
        (CellValue::Text(kind), CellValue::Text(name), CellValue::Int(root)) if kind == b"table" => {
            Some((String::from_utf8(name).ok()?, u32::try_from(root).ok()?))
        }
        (CellValue::Text(_), CellValue::Text(_), _) => Some((String::new(), 0)),
        _ => None,
    }
}

/// Returns the table whose rows have these column types. The first column of each table is its key, which is not stored
/// in the row.
fn table_for_types(types: &[u64]) -> Option<StoreTable> {
    let shape: String = types.iter().map(|kind| shape(*kind)).collect();
    let fits = |pattern: &str| {
        pattern.len() == shape.len()
            && pattern.bytes().zip(shape.bytes()).all(|(wanted, found)| match wanted {
                b't' => found == b't',
                b'i' => found == b'i',
                b'b' => found == b'b',
                b'?' => matches!(found, b't' | b'n'),
                b'+' => matches!(found, b't' | b'b'),
                b'*' => matches!(found, b't' | b'n' | b'i'),
                _ => found == b'n',
            })
    };
    [
        ("nttt?iittt?", StoreTable::Sessions),
        ("nii+i", StoreTable::Records),
        ("niiib", StoreTable::Packed),
        ("ni*?tttttt", StoreTable::Decisions),
        ("nttitb", StoreTable::Outbox),
    ]
    .into_iter()
    .find_map(|(pattern, table)| fits(pattern).then_some(table))
}

fn shape(kind: u64) -> char {
    match kind {
        0 => 'n',
        1..=6 | 8 | 9 => 'i',
        12.. if kind.is_multiple_of(2) => 'b',
        13.. => 't',
        _ => 'x',
    }
}

/// Parses a value. If the value is truncated, returns the part that is present.
fn value(kind: u64, rest: &mut &[u8]) -> Option<CellValue> {
    let length = match kind {
        1..=4 => usize::try_from(kind).ok()?,
        5 => 6,
        6 => 8,
        12.. => usize::try_from((kind - 12) / 2).ok()?,
        _ => 0,
    };
    let (bytes, after) = rest.split_at(length.min(rest.len()));
    *rest = after;
    Some(match kind {
        0 => CellValue::Null,
        8 => CellValue::Int(0),
        9 => CellValue::Int(1),
        1..=6 => {
            let first = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
            CellValue::Int(bytes.iter().fold(first, |number: i64, byte| number << 8 | i64::from(*byte)))
        }
        12.. if kind.is_multiple_of(2) => CellValue::Blob(bytes.to_vec()),
        13.. => CellValue::Text(bytes.to_vec()),
        _ => return None,
    })
}

/// Returns the number of bytes of a row that are stored in its leaf page, as specified by the SQLite file format.
fn local_bytes(bytes: usize, page: usize) -> usize {
    let most = page - 35;
    if bytes <= most {
        return bytes;
    }
    let least = (page - 12) * 32 / 255 - 23;
    let fitting = least + (bytes - least) % (page - 4);
    if fitting <= most { fitting } else { least }
}

/// Parses a variable-length integer in SQLite's format, in which the most significant bits come first.
fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for index in 0..9 {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        if index == 8 {
            return Some(value << 8 | u64::from(byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

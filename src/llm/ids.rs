//! Conversion of call IDs to the format that a provider accepts. It is deterministic, so results always match their
//! calls.

/// Format of call IDs that a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ids {
    /// Nearly any ID. IDs are sent unchanged, because some servers parse the IDs that they assigned.
    Any,
    /// IDs that consist of letters, digits, `_` and `-`.
    Word,
    /// IDs with at most this number of characters.
    UpTo(usize),
    /// IDs that consist of exactly nine letters or digits.
    Nine,
}

impl Ids {
    /// Returns a valid replacement for an ID, or `None` if the ID already has this format.
    pub(crate) fn fit(self, id: &str) -> Option<String> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let printable = || !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic());
        let is_fit = match self {
            Self::Any => printable() && id.len() <= 1024,
            Self::Word => !id.is_empty() && id.len() <= 64 && id.bytes().all(word),
            Self::UpTo(most) => printable() && id.len() <= most,
            Self::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        };
        if is_fit {
            return None;
        }
        let hash = hash(id);
        Some(match self {
            Self::Any | Self::Word | Self::UpTo(_) => format!("call_{hash:016x}"),
            Self::Nine => nine_digit_id(hash),
        })
    }
}

/// Computes an FNV-1a hash. Unlike the standard library's hashes, it is the same in every version, so repeated requests
/// are identical.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn nine_digit_id(mut hash: u64) -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let letter = |_| {
        let letter = LETTERS[(hash % 36) as usize];
        hash /= 36;
        char::from(letter)
    };
    (0..9).map(letter).collect()
}

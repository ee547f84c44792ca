//! Ids of calls in the form that a provider takes; always the same one for the same id, so that a result finds its call.

/// What a provider takes for the id of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ids {
    /// Nearly anything: some servers read their own ids again.
    Any,
    /// Letters, digits, `_` and `-`.
    Word,
    /// No more characters than this.
    UpTo(usize),
    /// Nine letters or digits.
    Nine,
}

impl Ids {
    /// The id itself where it is fit, and one that stands for it where it is not.
    pub fn fit(self, id: &str) -> Option<String> {
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
            Self::Nine => nine(hash),
        })
    }
}

/// FNV-1a: the same in every version, since what is sent again should be what was sent before.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn nine(mut hash: u64) -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let letter = |_| {
        let letter = LETTERS[(hash % 36) as usize];
        hash /= 36;
        char::from(letter)
    };
    (0..9).map(letter).collect()
}

//! Verdicts on opening a file in its default desktop program. Only readable files can be opened, and always with
//! approval.

use super::files::{self, FileAccess};
use super::layer::CompiledLayer;
use super::layer_verdict::{ActionFinding, LayerVerdict};
use super::paths::Context;
use crate::protocol::{Action, Place, Risk, Target};
use jiff::Timestamp;

/// File extensions that programs only display. Pages that can run scripts are not included, and a file without an
/// extension may be a program.
const LOOKED_AT: &[&str] = &[
    "avi", "bmp", "csv", "flac", "gif", "ico", "jpeg", "jpg", "json", "log", "m4a", "md", "mkv", "mov", "mp3", "mp4", "odp",
    "ods", "odt", "ogg", "pdf", "png", "rst", "tif", "tiff", "toml", "tsv", "txt", "wav", "webm", "webp", "yaml", "yml",
];

/// Judges opening a file. Approval is required regardless of rules and mode, because the program that opens the file is
/// not sandboxed.
pub(crate) fn judge(target: &Target, layers: &[CompiledLayer], context: &Context, now: Timestamp) -> ActionFinding {
    let read = Action::Read { target: target.clone() };
    let mut finding = files::judge(FileAccess::Read, &read, target, layers, context, now);
    finding.reads_only = false;
    finding.remember = None;
    finding.risk = risk(target);
    if !finding.decided.is_denial() {
        let reason = if finding.risk == Risk::High {
            "opens the path outside the sandbox, in a program that may execute the file"
        } else {
            "opens the path outside the sandbox, in another program"
        };
        let asked = LayerVerdict::ask("built-in", reason).not_grantable();
        finding.decided = if finding.decided.is_question() { finding.decided.stricter(asked) } else { asked };
    }
    finding
}

fn risk(target: &Target) -> Risk {
    if target.place == Place::Directory {
        return Risk::Medium;
    }
    let ending = target.real.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    if ending.is_some_and(|ending| LOOKED_AT.contains(&ending.as_str())) { Risk::Medium } else { Risk::High }
}

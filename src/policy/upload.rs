//! Verdicts on uploads of files as artifacts: readable files, if the capability is granted, up to its size limit.

use super::files::{self, Access};
use super::layer::Ready;
use super::layer_verdict::{Decided, Finding, across, unlisted};
use super::paths::Context;
use crate::protocol::{Action, Place, Target};
use jiff::Timestamp;

const UPLOAD: &str = "Workspace.Upload";

pub(crate) fn judge(target: &Target, layers: &[Ready], context: &Context, now: Timestamp) -> Finding {
    let read = Action::Read { target: target.clone() };
    let mut finding = files::judge(Access::Read, &read, target, layers, context, now);
    let granted = across(UPLOAD, layers, |layer| in_layer(target, layer));
    finding.decided = finding.decided.stricter(granted);
    finding
}

fn in_layer(target: &Target, layer: &Ready) -> Option<Decided> {
    let Some(upload) = &layer.bundle.upload else { return unlisted(UPLOAD, layer) };
    let rule = layer.scope.rule(upload.line);
    if let (Some(most), Place::File { bytes }) = (upload.max_file_size_bytes, target.place)
        && bytes > most
    {
        return Some(Decided::deny(rule, format!("the file is {bytes} bytes; the limit for uploads is {most}")));
    }
    if upload.requires_approval {
        let asked = Decided::ask(rule, "uploads the file as an artifact");
        return Some(Decided { approval_rule: upload.approval_rule.clone(), ..asked });
    }
    Some(Decided::allow(rule, "the policy allows uploads"))
}

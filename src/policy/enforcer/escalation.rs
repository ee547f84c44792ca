//! Escalation: paths to which an approval may allow access after the sandbox blocked a command.

use crate::policy::layer::Ready;
use crate::policy::paths::{Context, is_in_other_home, of_the_machine, protected};
use jiff::Timestamp;
use std::path::Path;

/// Returns whether an approval may let one command write to this real path outside the workspace: never to protected paths, to
/// aye's own files, to those of the kernel, or against a rule.
pub(crate) fn may_be_written(path: &Path, layers: &[Ready], context: &Context) -> bool {
    let guarded = context.is_own(path) || protected(path, context).is_some() || of_the_machine(path, true);
    let shut = |layer: &Ready| {
        let rules = layer.write.as_ref();
        rules.is_some_and(|rules| rules.shut(layer.scope, path, Timestamp::UNIX_EPOCH).is_some())
    };
    !guarded && !layers.iter().any(shut)
}

/// Returns whether an approval may let one command read this real path outside the workspace: never credentials or aye's own
/// files, and never against a rule.
pub(crate) fn may_be_read(path: &Path, layers: &[Ready], context: &Context) -> bool {
    let guarded = context.is_own(path)
        || context.credential_place(path).is_some()
        || is_in_other_home(path, context)
        || of_the_machine(path, false);
    let shut = |layer: &Ready| {
        let rules = layer.read.as_ref();
        rules.is_some_and(|rules| rules.shut(layer.scope, path, Timestamp::UNIX_EPOCH).is_some())
    };
    !guarded && !layers.iter().any(shut)
}

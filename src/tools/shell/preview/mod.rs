//! Previews, in which commands run in a private copy-on-write view, so their effects are known before they are applied.

mod build_directories;
mod build_output;
mod changed_files;
mod commit;
mod direct_output;
mod effects;
mod eligibility;
mod ended_run;
mod hook_layer;
mod kept_times;
mod layer_end;
mod overlay_dir;
mod progress;
mod recover;
mod run;
mod selection;
#[cfg(test)]
mod tests;
mod throwaway_home;
mod undecided;
mod written_bytes;

pub(in crate::tools) use changed_files::PreviewFile;
pub(in crate::tools) use commit::{CommittedRun, commit};
pub(in crate::tools) use eligibility::{copy_obstacle, layer, offer};
pub(in crate::tools) use hook_layer::HookLayer;
pub(crate) use recover::{RecoveryResult, finish_commits};
pub(in crate::tools) use recover::{ResumedSession, recover};
pub(in crate::tools) use run::{PreviewRunResult, PreviewedCommand, run};
pub(in crate::tools) use undecided::{UndecidedLayer, reopen};
pub(crate) use undecided::{forget_undecided, prune_undecided, undecided_use};

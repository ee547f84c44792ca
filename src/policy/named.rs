//! Verdicts on named commands. A command must be defined by a policy, the call must match the definition, and its paths
//! must be permitted.

use super::bundle::NamedCommand;
use super::command::denial_of_layer;
use super::files::{self, FileAccess};
use super::layer::{CompiledLayer, Scope};
use super::layer_verdict::{ActionFinding, LayerVerdict};
use super::paths::Context;
use super::shell::Arg;
use crate::protocol::{Action, Risk, Target, VerdictKind};
use jiff::Timestamp;

/// A call of a named command, with its arguments filled in.
pub(crate) struct FilledCommand<'a> {
    pub name: &'a str,
    pub argv: &'a [String],
    /// Path arguments that are only read.
    pub inputs: &'a [Target],
    pub paths: &'a [Target],
}

/// Returns the named commands. If several policy layers define the same name, the strongest layer's definition is used.
/// A project cannot define named commands, because it must not choose which programs run.
pub(crate) fn distinct_commands(layers: &[CompiledLayer]) -> impl Iterator<Item = &NamedCommand> {
    let of = |layer: &'_ CompiledLayer| layer.scope.grants();
    let strongest = move |scope: Scope, name: &str| find_command(name, layers).is_some_and(|(first, _)| first == scope);
    let each =
        layers.iter().filter(move |layer| of(layer)).flat_map(|layer| layer.bundle.named.iter().map(|one| (layer.scope, one)));
    each.filter(move |(scope, command)| strongest(*scope, &command.name)).map(|(_, command)| command)
}

fn find_command<'a>(name: &str, layers: &'a [CompiledLayer]) -> Option<(Scope, &'a NamedCommand)> {
    let of = |layer: &'a CompiledLayer| Some((layer.scope, layer.bundle.named.iter().find(|command| command.name == name)?));
    layers.iter().filter(|layer| layer.scope.grants()).find_map(of)
}

pub(crate) fn judge(filled: &FilledCommand<'_>, layers: &[CompiledLayer], context: &Context, now: Timestamp) -> ActionFinding {
    let decided = match find_command(filled.name, layers) {
        None => LayerVerdict::deny("built-in", format!("no policy defines the named command `{}`", filled.name)),
        Some((scope, command)) if !command.fits(filled.argv) => LayerVerdict::deny(
            scope.rule(command.line),
            format!("the command line does not match the named command `{}`", command.name),
        ),
        Some((scope, command)) => command_verdict(scope, command),
    };
    // A command that is denied on a shell line is also denied as a named command.
    let words: Vec<Arg> = filled.argv.iter().map(Arg::plain).collect();
    let refused = layers.iter().filter_map(|layer| denial_of_layer(&words, layer, now));
    let places = filled.inputs.iter().map(|target| (FileAccess::Read, target));
    let places = places.chain(filled.paths.iter().flat_map(|target| [(FileAccess::Read, target), (FileAccess::Write, target)]));
    let out_of_bounds = places.filter_map(|(access, target)| judge_path_argument(access, target, layers, context, now));
    let decided = refused.chain(out_of_bounds).fold(decided, LayerVerdict::stricter);
    ActionFinding { decided, risk: Risk::Medium, critical: false, reads_only: false, remember: None, parts: Vec::new() }
}

fn command_verdict(scope: Scope, command: &NamedCommand) -> LayerVerdict {
    let mut decided = if command.requires_approval {
        LayerVerdict::ask(scope.rule(command.approval_line), format!("the named command `{}` needs approval", command.name))
    } else {
        LayerVerdict::allow(scope.rule(command.approval_line), format!("the named command `{}` needs no approval", command.name))
    };
    decided.locked = scope.is_managed();
    decided.approval_rule.clone_from(&command.approval_rule);
    decided
}

/// Judges a path argument. Only denials and locked verdicts are returned, because the command as a whole determines
/// whether approval is needed.
fn judge_path_argument(
    access: FileAccess,
    target: &Target,
    layers: &[CompiledLayer],
    context: &Context,
    now: Timestamp,
) -> Option<LayerVerdict> {
    let action = match access {
        FileAccess::Read => Action::Read { target: target.clone() },
        FileAccess::Write => Action::Write { target: target.clone() },
        FileAccess::Delete => Action::Delete { target: target.clone() },
    };
    let decided = files::judge(access, &action, target, layers, context, now).decided;
    // A locked ask verdict on a path applies whatever the verdict on the command is.
    (decided.verdict == VerdictKind::Deny || decided.locked).then_some(decided)
}

/// Formats the words as a shell command line.
pub fn line<W: AsRef<str>>(words: &[W]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell. Different commands always look different.
pub fn quoted(word: &str) -> std::borrow::Cow<'_, str> {
    let plain = |letter: char| letter.is_alphanumeric() || "%+,-./:=@_^~".contains(letter);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")).into() }
}

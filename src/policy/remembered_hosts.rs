//! Hosts in saved rules. Such a rule permits one command to connect to these hosts without a prompt when it runs in a
//! copy of the workspace. The hosts are never available to other commands, or to programs that run other code or send
//! arbitrary data.

use super::bundle::{Rule, RuleDecision};
use super::command::{CommandContext, is_in_reach, only_command};
use super::host_access::never_reaches;
use super::shell::Arg;
use crate::protocol::{SandboxAccess, Target};

/// Options that may follow the words of a rule because they only affect verbosity or select locked versions.
const QUIET: &[&str] = &["-q", "--quiet", "-v", "-vv", "--verbose", "--silent", "--no-progress", "--locked", "--frozen"];

/// If a line consists of a single command, returns the hosts that rules permit it to connect to. A project's policy
/// cannot add hosts.
pub(crate) fn remembered_hosts(command: &str, cwd: &Target, scene: &CommandContext<'_>) -> Vec<SandboxAccess> {
    let mut hosts: Vec<SandboxAccess> = Vec::new();
    only_command(command, cwd, scene, |line, part, scene| {
        let argv = &part.invocations[0].argv;
        if never_reaches(argv).is_some() {
            return;
        }
        let layers = scene.layers.iter().filter(|layer| !layer.scope.only_tightens());
        let rules = layers
            .flat_map(|layer| &layer.commands)
            .filter(|owned| owned.rule.decision == RuleDecision::Allow)
            .map(|owned| &owned.rule);
        for rule in rules.filter(|rule| covers(rule, argv) && is_in_reach(rule, line, part, scene)) {
            for host in &rule.hosts {
                if !hosts.contains(host) {
                    hosts.push(host.clone());
                }
            }
        }
    });
    hosts
}

/// Returns whether a rule permits this command to connect to its hosts. The command must consist of the rule's words
/// and must not add any significant word.
fn covers(rule: &Rule, argv: &[Arg]) -> bool {
    let is_plain = |arg: &Arg| arg.is_known() && !arg.glob;
    let adds = argv.iter().skip(rule.word_count()).any(|arg| !QUIET.contains(&arg.text.as_str()));
    !rule.hosts.is_empty() && rule.may_name(&argv[0].text) && rule.matches_allow(argv) && argv.iter().all(is_plain) && !adds
}

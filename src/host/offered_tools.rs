//! Determines which tools are offered to the model under a policy, and which a front end lists.

use crate::policy::Enforcer;
use crate::ports::ToolRouter;
use crate::protocol::ToolDefinition;
use crate::tools::Router;

/// Returns the tools to offer to the model, which are those whose capability is granted and that no policy layer
/// disables.
pub(crate) fn tools_for_model(router: &Router, policy: &Enforcer) -> Vec<ToolDefinition> {
    router.definitions().into_iter().filter(|tool| is_granted(&tool.tool_name, router, policy)).collect()
}

/// Returns the names of the tools offered to the model, and of those that the model can load on demand.
pub(crate) fn available(router: &Router, policy: &Enforcer) -> Vec<String> {
    router.available().into_iter().filter(|name| is_granted(name, router, policy)).collect()
}

fn is_granted(name: &str, router: &Router, policy: &Enforcer) -> bool {
    let granted = router.capability(name).is_some_and(|capability| policy.grants(capability));
    granted && policy.offers(router.full_name(name).as_deref().unwrap_or(name)).is_ok()
}

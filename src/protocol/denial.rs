//! Denials of calls: who or what denied a call, and the reason.

use serde::{Deserialize, Serialize};

/// Denial reason when no user is available to approve the call.
pub const NO_USER: &str = "no user can approve this call";
/// Start of the reason for a denial by the approval service.
pub const DENIED_BY_SERVICE: &str = "denied by the approval service";
/// Start of the denial reason after a timeout.
pub const NO_ANSWER: &str = "no answer within";
/// Denial reason if the task was cancelled.
pub const TASK_CANCELLED: &str = "the task was cancelled";
/// Start of the denial reason if the policy changed while approval was pending.
pub const POLICY_DENIES: &str = "the policy now denies this call";

/// Who or what denied a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denier {
    User,
    /// The approval service that the user has configured.
    Service,
    /// The approval timed out.
    Timeout,
    /// The task was cancelled.
    Cancel,
    /// No user or service could approve the call.
    Nobody,
    /// The policy changed while approval was pending.
    Policy,
    /// The agent that made the call ended.
    AgentEnd,
}

/// Denial of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredDenial")]
pub struct CallDenial {
    #[serde(rename = "deniedBy")]
    pub by: Denier,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Denial as stored. Records of earlier versions do not say who denied the call.
#[derive(Deserialize)]
struct StoredDenial {
    #[serde(default, rename = "deniedBy")]
    by: Option<Denier>,
    #[serde(default)]
    reason: Option<String>,
}

impl Denier {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Service => "service",
            Self::Timeout => "timeout",
            Self::Cancel => "cancel",
            Self::Nobody => "nobody",
            Self::Policy => "policy",
            Self::AgentEnd => "agent_end",
        }
    }

    /// Derives who or what denied a call from the reason in a record of an earlier version.
    fn from_earlier_reason(reason: &str) -> Self {
        match reason {
            NO_USER | "no one to ask" => Self::Nobody,
            TASK_CANCELLED => Self::Cancel,
            _ if reason.starts_with(NO_ANSWER) => Self::Timeout,
            _ if reason.starts_with(DENIED_BY_SERVICE) => Self::Service,
            _ if reason.starts_with(POLICY_DENIES) => Self::Policy,
            _ => Self::User,
        }
    }
}

impl From<StoredDenial> for CallDenial {
    fn from(stored: StoredDenial) -> Self {
        let StoredDenial { by, reason } = stored;
        let by = by.unwrap_or_else(|| Denier::from_earlier_reason(reason.as_deref().unwrap_or_default()));
        Self { by, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Decision;
    use serde_json::json;

    #[test]
    fn records_of_earlier_versions_say_in_the_reason_who_denied_the_call() {
        for (reason, by) in [
            (json!(null), Denier::User),
            (json!("not now"), Denier::User),
            (json!("no user can approve this call"), Denier::Nobody),
            (json!("no one to ask"), Denier::Nobody),
            (json!("the task was cancelled"), Denier::Cancel),
            (json!("no answer within 5 min"), Denier::Timeout),
            (json!("denied by the approval service: not today"), Denier::Service),
            (json!("the policy now denies this call: plan mode allows no changes"), Denier::Policy),
        ] {
            let decision: Decision = serde_json::from_value(json!({"decision": "denied", "reason": reason})).unwrap();
            let reason = reason.as_str().map(str::to_owned);
            assert_eq!(decision, Decision::Denied(CallDenial { by, reason }));
        }
        let decision: Decision = serde_json::from_value(json!({"decision": "denied"})).unwrap();
        assert_eq!(decision, Decision::denied(None));
    }

    #[test]
    fn a_reason_that_the_user_typed_does_not_change_who_denied_the_call() {
        for reason in [NO_USER, TASK_CANCELLED, "no answer within an hour", DENIED_BY_SERVICE, POLICY_DENIES] {
            let decision = Decision::denied(Some(reason.to_owned()));
            let stored = serde_json::to_value(&decision).unwrap();
            assert_eq!(stored, json!({"decision": "denied", "deniedBy": "user", "reason": reason}));
            assert_eq!(serde_json::from_value::<Decision>(stored).unwrap(), decision);
        }
    }

    #[test]
    fn names_are_the_same_in_records_and_messages() {
        for by in
            [Denier::User, Denier::Service, Denier::Timeout, Denier::Cancel, Denier::Nobody, Denier::Policy, Denier::AgentEnd]
        {
            assert_eq!(serde_json::to_value(by).unwrap(), by.as_str());
        }
    }
}

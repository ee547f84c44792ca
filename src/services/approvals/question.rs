//! Questions to the approval service. An answer is accepted only if it is signed and refers to exactly this question.

use super::client::{ApprovalService, QUESTION_TIME, RESPONSE_BYTES, ServiceMessage};
use super::record::shown_request;
use super::signature::Signer;
use crate::protocol::{Approval, DENIED_BY_SERVICE};
use crate::services::SessionFacts;
use crate::services::backoff::Backoff;
use crate::services::redaction::RedactText;
use crate::text::rewrite_strings;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio::time::Instant;

/// Message type of a question.
const REQUESTED: &str = "approval.requested";
/// Message type of an answer.
const ANSWERED: &str = "approval.answered";
/// Delay before the question is sent again if the service has no decision yet and does not specify a delay.
const LATER: Duration = Duration::from_secs(2);
const MIN_LATER: Duration = Duration::from_secs(1);

/// Decision made by the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApprovalAnswer {
    Approved,
    /// Denied. The reason is passed on to the model: `denied by the approval service: not today`.
    Denied {
        reason: String,
    },
}

/// Question, with the values that a valid answer must repeat.
struct Question {
    id: String,
    approval_id: String,
    nonce: String,
    /// Hash of the question as it was sent: `sha256:…`.
    digest: String,
    body: Vec<u8>,
}

/// Message body of an answer.
#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "type")]
    kind: String,
    data: AnswerData,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerData {
    approval_id: String,
    nonce: String,
    digest: String,
    decision: String,
    #[serde(default)]
    reason: Option<String>,
}

/// Outcome of a single request.
#[derive(Debug)]
enum Attempt {
    Answer(ApprovalAnswer),
    /// The service has no decision yet, and should be asked again after this delay.
    Later(Duration),
}

impl ApprovalService {
    /// Asks the service for a decision until a valid answer arrives. Returns `None` once the time limit has passed
    /// according to the wall clock. The last wait may extend past the time limit, so the caller must also enforce it.
    ///
    /// # Errors
    /// Returns an error if a request cannot be signed or created.
    pub(crate) async fn decide(
        &self,
        facts: &SessionFacts,
        approval: &Approval,
        time: Duration,
        redact: &RedactText,
    ) -> Result<Option<ApprovalAnswer>, String> {
        let signer = self.signer().await?;
        let question = Question::new(facts, approval, time, redact)?;
        let (end, asked) = (Instant::now() + time, jiff::Timestamp::now());
        let mut failures = 0;
        // Tokio's clock does not run while the machine is suspended.
        while !is_expired(asked, jiff::Timestamp::now(), time) {
            let left = end.saturating_duration_since(Instant::now());
            let wait = match self.attempt(&signer, &question, left.min(QUESTION_TIME)).await {
                Ok(Attempt::Answer(answer)) if !is_expired(asked, jiff::Timestamp::now(), time) => return Ok(Some(answer)),
                Ok(Attempt::Answer(_)) => {
                    tracing::warn!("the answer of the approval service came too late");
                    break;
                }
                Ok(Attempt::Later(delay)) => {
                    failures = 0;
                    delay
                }
                Err(reason) => {
                    tracing::warn!(reason, "no valid answer from the approval service");
                    failures += 1;
                    Backoff::DEFAULT.delay(failures, None)
                }
            };
            tokio::time::sleep(wait).await;
        }
        Ok(None)
    }

    async fn attempt(&self, signer: &Signer, question: &Question, patience: Duration) -> Result<Attempt, String> {
        let message = ServiceMessage { id: &question.id, body: question.body.clone().into(), patience };
        let reply = self.post(signer, message, true).await?;
        let status = reply.status();
        if status == 202 {
            return Ok(Attempt::Later(reply.retry_after().unwrap_or(LATER).max(MIN_LATER)));
        }
        if status != 200 {
            return Err(format!("responded with {}", reply.status_line()));
        }
        let header =
            |name: &str| reply.header(name).map(str::to_owned).ok_or_else(|| format!("the response has no header `{name}`"));
        let (id, timestamp, signature) = (header("webhook-id")?, header("webhook-timestamp")?, header("webhook-signature")?);
        let body = tokio::time::timeout(patience, reply.into_body(RESPONSE_BYTES)).await;
        let body = body.map_err(|_| "the response is incomplete")?.map_err(|error| error.to_string())?;
        let body = body.ok_or("the response is too large")?;
        if !signer.verify(&id, &timestamp, &body, &signature) {
            return Err("the signature is invalid".to_owned());
        }
        question.check(&body).map(Attempt::Answer)
    }
}

impl Question {
    fn new(facts: &SessionFacts, approval: &Approval, time: Duration, redact: &RedactText) -> Result<Self, String> {
        let mut request = shown_request(approval);
        if request.get("isTruncated").is_some() {
            return Err("the request is too large to be shown in full".to_owned());
        }
        rewrite_strings(&mut request, &**redact);
        let shown = serde_json::value::to_raw_value(&request).map_err(|error| error.to_string())?;
        let digest = format!("sha256:{}", crate::text::hex(&Sha256::digest(shown.get().as_bytes())));
        // The key is the same for all attempts, so that the service can recognize them.
        let (id, nonce) = (format!("ask_{}", random()), format!("{}{}", random(), random()));
        let now = jiff::Timestamp::now();
        let mut data = json!({
            "approvalId": approval.approval_id,
            "sessionId": facts.session_id,
            "workspaceId": facts.workspace_id,
            "workspace": redact(&facts.workspace),
            "nonce": nonce,
            "digest": digest,
            "expiresInSeconds": time.as_secs(),
        })
        .to_string();
        // The request is the last member, byte for byte as hashed.
        data.truncate(data.len() - 1);
        let body = format!(r#"{{"type":"{REQUESTED}","timestamp":"{now}","data":{data},"request":{}}}}}"#, shown.get());
        Ok(Self { id, approval_id: approval.approval_id.to_string(), nonce, digest, body: body.into_bytes() })
    }

    /// Validates the content of an answer whose signature has been verified, and returns the decision.
    ///
    /// # Errors
    /// Returns an error if the answer does not match this question.
    fn check(&self, body: &[u8]) -> Result<ApprovalAnswer, String> {
        let answer: Answer = serde_json::from_slice(body).map_err(|error| format!("not an answer: {error}"))?;
        let data = answer.data;
        for (name, found, expected) in [
            ("type", &answer.kind, ANSWERED),
            ("approvalId", &data.approval_id, &self.approval_id),
            ("nonce", &data.nonce, &self.nonce),
            ("digest", &data.digest, &self.digest),
        ] {
            if found != expected {
                return Err(format!("the answer has a different `{name}`"));
            }
        }
        match data.decision.as_str() {
            "approved" => Ok(ApprovalAnswer::Approved),
            "denied" => {
                let reason = data.reason.map(|reason| crate::text::clean_line(&reason)).filter(|reason| !reason.is_empty());
                let reason =
                    reason.map_or_else(|| DENIED_BY_SERVICE.to_owned(), |reason| format!("{DENIED_BY_SERVICE}: {reason}"));
                Ok(ApprovalAnswer::Denied { reason })
            }
            _ => Err("the answer has an unknown `decision`".to_owned()),
        }
    }
}

/// Returns whether the time limit of a question has passed, including any time for which the process or the machine was
/// suspended.
fn is_expired(asked: jiff::Timestamp, now: jiff::Timestamp, time: Duration) -> bool {
    now.duration_since(asked) >= jiff::SignedDuration::try_from(time).unwrap_or(jiff::SignedDuration::MAX)
}

fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_expires_with_its_time_limit_by_the_wall_clock() {
        let at = |text: &str| text.parse().unwrap();
        let (asked, limit) = (at("2026-01-01T10:00:00Z"), Duration::from_secs(300));
        assert!(!is_expired(asked, at("2026-01-01T10:04:59Z"), limit));
        assert!(is_expired(asked, at("2026-01-01T10:05:00Z"), limit));
        assert!(is_expired(asked, at("2026-01-02T10:00:00Z"), limit), "the machine was suspended for a day");
        assert!(!is_expired(asked, at("2026-01-01T09:00:00Z"), limit), "the clock was set back");
        assert!(!is_expired(asked, at("2026-01-02T10:00:00Z"), Duration::MAX));
    }
}

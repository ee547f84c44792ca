//! Downloads public documents, such as a list of models, the release index or a plugin.

use crate::protocol::Problem;
use crate::sys::http::{HttpError, HttpServer, Timeouts};
use std::time::Duration;

/// Timeout for a complete download.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of redirects followed.
const MAX_REDIRECTS: usize = 5;

/// Downloads the document at a URL that passed `config::check_list_url`. Redirects are not followed.
///
/// # Errors
///
/// Returns an error if the server cannot be reached, if it does not send the document in time, or if the document is
/// larger than `max_bytes`.
pub(crate) async fn download(given: &str, timeouts: Timeouts, max_bytes: usize) -> Result<Vec<u8>, Problem> {
    within(TIMEOUT, given, async {
        match request(given, timeouts, max_bytes).await? {
            Response::Document(body) => Ok(body),
            Response::Redirect { status, target } => {
                Err(cannot(given, &format!("{status}, a redirect to `{target}`, which is not followed")))
            }
        }
    })
    .await
}

/// Downloads the document at a URL that passed `config::check_list_url`. Follows redirects to HTTPS or to the same
/// server.
///
/// # Errors
///
/// Returns an error if the server cannot be reached, if it does not send the document in time, or if the document is
/// larger than `max_bytes`.
pub(crate) async fn download_following(
    given: &str,
    timeouts: Timeouts,
    (max_bytes, time): (usize, Duration),
) -> Result<Vec<u8>, Problem> {
    within(time, given, async {
        let mut address = given.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            match request(&address, timeouts, max_bytes).await? {
                Response::Document(body) => return Ok(body),
                Response::Redirect { status, target } => {
                    let base = url::Url::parse(&address).map_err(|error| cannot(given, &error))?;
                    let next = base.join(&target).map_err(|error| cannot(given, &error))?;
                    if next.scheme() != "https" && next.origin() != base.origin() {
                        return Err(cannot(given, &format!("{status}, a redirect to `{next}`, which is not encrypted")));
                    }
                    next.as_str().clone_into(&mut address);
                }
            }
        }
        Err(cannot(given, &format!("more than {MAX_REDIRECTS} redirects")))
    })
    .await
}

/// Response to a single request.
enum Response {
    Document(Vec<u8>),
    Redirect { status: String, target: String },
}

async fn request(given: &str, timeouts: Timeouts, max_bytes: usize) -> Result<Response, Problem> {
    let failed = |error: &HttpError| {
        let problem = cannot(given, error);
        if is_about_time(&error.to_string()) { problem.hint("check this machine's clock") } else { problem }
    };
    let url = url::Url::parse(given).map_err(|error| cannot(given, &error))?;
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let origin = &url[..url::Position::BeforePath];
    let server = HttpServer::new(origin, timeouts).map_err(|error| cannot(given, &error))?;
    let reply = server.get(path, &Vec::new()).await.map_err(|error| failed(&error))?;
    match reply.status() {
        200..300 => {
            let body = reply.into_body(max_bytes).await.map_err(|error| failed(&error))?;
            let is_too_large = || cannot(given, &format!("the file is larger than {}", crate::protocol::size(max_bytes as u64)));
            body.map(Response::Document).ok_or_else(is_too_large)
        }
        300..400 => {
            let target = reply.header("location").unwrap_or_default().to_owned();
            Ok(Response::Redirect { status: reply.status_line(), target })
        }
        _ => Err(cannot(given, &reply.status_line())),
    }
}

fn cannot(given: &str, why: &dyn std::fmt::Display) -> Problem {
    Problem::new(format!("cannot download `{given}`")).because(why)
}

async fn within(time: Duration, given: &str, all: impl Future<Output = Result<Vec<u8>, Problem>>) -> Result<Vec<u8>, Problem> {
    let late = |_| Err(cannot(given, &format!("no response within {} s", time.as_secs())));
    tokio::time::timeout(time, all).await.unwrap_or_else(late)
}

/// Returns whether a certificate was rejected because of its validity dates. This usually means that the clock of this
/// machine or of the server is wrong.
fn is_about_time(error: &str) -> bool {
    let error = error.to_lowercase();
    error.contains("certificate") && ["expired", "not valid yet", "notvalidyet"].iter().any(|word| error.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_outside_their_validity_period_are_distinguished_from_other_errors() {
        use rustls::CertificateError::{Expired, NotValidYet, UnknownIssuer};
        let message = |reason| HttpError::Unreachable {
            server: "dl.example".to_owned(),
            reason: format!("TLS: {}", rustls::Error::InvalidCertificate(reason)),
        };
        assert!(is_about_time(&message(Expired).to_string()));
        assert!(is_about_time(&message(NotValidYet).to_string()));
        assert!(!is_about_time(&message(UnknownIssuer).to_string()));
        assert!(!is_about_time("the lease of dl.example has expired"));
    }
}

//! Credentials provided by the container or machine on which aye runs.

use super::AwsCredentials;
use crate::cloud::{CloudEnvironment, headers, json, metadata_server, read, server};
use crate::protocol::Problem;
use crate::sys::http::{Headers, HttpServer, Reply};

/// Address of the endpoint that provides credentials to containers.
const CONTAINER: &str = "http://169.254.170.2";
/// Address of the instance metadata service.
const METADATA: &str = "http://169.254.169.254";
const ROLE_PATH: &str = "/latest/meta-data/iam/security-credentials/";
/// Lifetime of a metadata token in seconds.
const TOKEN_SECONDS: &str = "300";

/// Returns the credentials of the container or machine, if it provides any.
pub(super) async fn credentials(surroundings: &CloudEnvironment) -> Result<Option<AwsCredentials>, Problem> {
    if let Some((server, path)) = container(surroundings)? {
        let token = container_token(surroundings)?;
        let headers = token.as_deref().map(|token| headers([("authorization", token)])).unwrap_or_default();
        let problem = || Problem::new("the container returned no AWS credentials");
        let reply = server.get(&path, &headers).await.map_err(|error| problem().because(error))?;
        let (status, value) = json(reply).await;
        return AwsCredentials::from_json(&value).map(Some).ok_or_else(|| problem().because(format!("status {status}")));
    }
    if surroundings.variable("AWS_EC2_METADATA_DISABLED").is_some_and(|flag| flag.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let address = surroundings.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or(METADATA);
    Ok(fetch_from_metadata(&metadata_server(address)?).await)
}

/// Returns the credentials of the machine's role. Returns `None` if the machine is not an EC2 instance or has no role.
async fn fetch_from_metadata(server: &HttpServer) -> Option<AwsCredentials> {
    let lifetime = headers([("x-aws-ec2-metadata-token-ttl-seconds", TOKEN_SECONDS)]);
    let token = line(server.put("/latest/api/token", &lifetime).await.ok()?).await?;
    let headers: Headers = headers([("x-aws-ec2-metadata-token", token.as_str())]);
    let role = line(server.get(ROLE_PATH, &headers).await.ok()?).await?;
    let (_, value) = json(server.get(&format!("{ROLE_PATH}{role}"), &headers).await.ok()?).await;
    AwsCredentials::from_json(&value)
}

/// Returns the first line of a response, provided that it was successful.
async fn line(reply: Reply) -> Option<String> {
    if reply.status() != 200 {
        return None;
    }
    let body = reply.into_head(4 << 10).await;
    let line = String::from_utf8(body).ok()?.lines().next()?.trim().to_owned();
    (!line.is_empty() && line.bytes().all(|byte| byte.is_ascii_graphic())).then_some(line)
}

fn container(surroundings: &CloudEnvironment) -> Result<Option<(HttpServer, String)>, Problem> {
    if let Some(path) = surroundings.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
        return Ok(Some((metadata_server(CONTAINER)?, path.to_owned())));
    }
    let Some(address) = surroundings.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") else { return Ok(None) };
    let server = if address.starts_with("https://") { server(address)? } else { metadata_server(address)? };
    Ok(Some((server, String::new())))
}

fn container_token(surroundings: &CloudEnvironment) -> Result<Option<String>, Problem> {
    match surroundings.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(path) => Ok(read(&surroundings.expand_path(path))?.map(|token| token.trim().to_owned())),
        None => Ok(surroundings.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned)),
    }
}

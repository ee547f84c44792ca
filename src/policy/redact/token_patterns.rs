//! Patterns for tokens with a known prefix.

/// Characters that may follow the prefix of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Letters {
    /// Letters and digits: `A-Z a-z 0-9`.
    Plain,
    /// `Plain` and `_`.
    Word,
    /// `Word` and `-`.
    Dashed,
    /// `Dashed` and `.`.
    Dotted,
    /// `Plain` and `=`, `+`, `/`.
    Base64,
    /// Lower-case hexadecimal digits: `0-9 a-f`.
    Hex,
    /// Upper-case letters and digits: `A-Z 0-9`.
    Upper,
}

impl Letters {
    pub(super) fn has(self, byte: u8) -> bool {
        match self {
            Self::Plain => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Dashed => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'=' | b'+' | b'/'),
            Self::Hex => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            Self::Upper => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
        }
    }
}

/// Form of a token.
#[derive(Debug)]
pub(super) struct TokenShape {
    /// Literal prefix of the token.
    pub start: &'static str,
    pub kind: &'static str,
    pub letters: Letters,
    /// Minimum number of characters after the prefix. If it equals `most`, the number is exact.
    pub least: usize,
    pub most: usize,
    /// Whether there is no token if a letter directly precedes the prefix. Used for short prefixes, which also occur
    /// inside words.
    pub apart: bool,
}

const ANY: usize = usize::MAX;

const fn shape(start: &'static str, kind: &'static str, letters: Letters, least: usize, most: usize) -> TokenShape {
    TokenShape { start, kind, letters, least, most, apart: false }
}

const fn short(start: &'static str, kind: &'static str, letters: Letters, least: usize, most: usize) -> TokenShape {
    TokenShape { start, kind, letters, least, most, apart: true }
}

use Letters::{Base64, Dashed, Dotted, Hex, Plain, Upper, Word};

pub(super) const SHAPES: &[TokenShape] = &[
    // Providers of models.
    shape("sk-ant-", "anthropic-key", Dashed, 20, ANY),
    shape("sk-proj-", "openai-key", Dashed, 20, ANY),
    shape("sk-svcacct-", "openai-key", Dashed, 20, ANY),
    shape("sk-admin-", "openai-key", Dashed, 20, ANY),
    shape("sk-or-v1-", "openrouter-key", Dashed, 20, ANY),
    shape("sk-lf-", "langfuse-key", Dashed, 20, ANY),
    short("sk-", "openai-key", Dashed, 20, ANY),
    shape("sess-", "openai-key", Plain, 40, ANY),
    short("AIza", "google-key", Dashed, 35, ANY),
    short("gsk_", "groq-key", Plain, 30, ANY),
    short("xai-", "xai-key", Dashed, 40, ANY),
    short("hf_", "huggingface-token", Plain, 30, ANY),
    shape("api_org_", "huggingface-token", Plain, 30, ANY),
    short("r8_", "replicate-token", Plain, 30, ANY),
    shape("pplx-", "perplexity-key", Plain, 32, ANY),
    shape("fw_", "fireworks-key", Plain, 20, 24),
    shape("nvapi-", "nvidia-key", Dashed, 40, ANY),
    shape("tgp_v1_", "together-key", Dashed, 30, ANY),
    shape("csk-", "cerebras-key", Plain, 40, ANY),
    shape("voyage-", "voyage-key", Dashed, 40, ANY),
    shape("pa-", "voyage-key", Dashed, 43, 43),
    shape("jina_", "jina-key", Dashed, 40, ANY),
    shape("tvly-", "tavily-key", Dashed, 24, ANY),
    shape("lsv2_", "langsmith-key", Word, 30, ANY),
    shape("pcsk_", "pinecone-key", Word, 40, ANY),
    // Clouds.
    short("AKIA", "aws-key-id", Upper, 16, 16),
    short("ASIA", "aws-key-id", Upper, 16, 16),
    short("ABIA", "aws-key-id", Upper, 16, 16),
    short("ACCA", "aws-key-id", Upper, 16, 16),
    short("ABSK", "aws-bedrock-key", Base64, 80, ANY),
    shape("ya29.", "google-token", Dashed, 20, ANY),
    shape("GOCSPX-", "google-secret", Dashed, 20, ANY),
    shape("1//0", "google-token", Dashed, 40, ANY),
    shape("dop_v1_", "digitalocean-token", Hex, 60, ANY),
    shape("doo_v1_", "digitalocean-token", Hex, 60, ANY),
    shape("dor_v1_", "digitalocean-token", Hex, 60, ANY),
    short("LTAI", "alibaba-key", Plain, 16, 26),
    short("AKID", "tencent-key", Plain, 32, 32),
    shape("HRKU-", "heroku-key", Dashed, 30, ANY),
    shape("FlyV1 fm2_", "fly-token", Base64, 40, ANY),
    shape("fm2_", "fly-token", Base64, 80, ANY),
    shape("fo1_", "fly-token", Dashed, 40, ANY),
    shape("dapi", "databricks-token", Hex, 32, 34),
    shape("nfp_", "netlify-token", Plain, 30, ANY),
    shape("vercel_", "vercel-token", Plain, 24, ANY),
    shape("tskey-", "tailscale-key", Dashed, 20, ANY),
    shape("pul-", "pulumi-token", Hex, 40, 40),
    shape("sbp_", "supabase-key", Word, 36, ANY),
    shape("sb_secret_", "supabase-key", Dashed, 20, ANY),
    shape("pscale_tkn_", "planetscale-token", Base64, 30, ANY),
    shape("pscale_pw_", "planetscale-password", Base64, 30, ANY),
    shape("ATCTT3xFfG", "atlassian-token", Base64, 30, ANY),
    shape("ATATT3xFfG", "atlassian-token", Base64, 30, ANY),
    shape("ATBB", "bitbucket-token", Plain, 28, 40),
    // Code hosting.
    shape("ghp_", "github-token", Word, 30, ANY),
    shape("gho_", "github-token", Word, 30, ANY),
    shape("ghu_", "github-token", Word, 30, ANY),
    shape("ghs_", "github-token", Dotted, 30, ANY),
    shape("ghr_", "github-token", Word, 30, ANY),
    shape("github_pat_", "github-token", Word, 30, ANY),
    shape("glpat-", "gitlab-token", Dotted, 20, ANY),
    shape("gldt-", "gitlab-token", Dashed, 20, ANY),
    shape("glrt-", "gitlab-token", Dotted, 20, ANY),
    shape("glrtr-", "gitlab-token", Dashed, 20, ANY),
    shape("glcbt-", "gitlab-token", Dashed, 20, ANY),
    shape("glptt-", "gitlab-token", Dashed, 20, ANY),
    shape("glft-", "gitlab-token", Dashed, 20, ANY),
    shape("glimt-", "gitlab-token", Dashed, 20, ANY),
    shape("glagent-", "gitlab-token", Dashed, 20, ANY),
    shape("gloas-", "gitlab-token", Dashed, 20, ANY),
    shape("glsoat-", "gitlab-token", Dashed, 20, ANY),
    shape("glffct-", "gitlab-token", Dashed, 20, ANY),
    shape("GR1348941", "gitlab-token", Dashed, 20, ANY),
    shape("npm_", "npm-token", Plain, 30, ANY),
    shape("pypi-AgE", "pypi-token", Dashed, 20, ANY),
    short("pypi-", "pypi-token", Dashed, 50, ANY),
    shape("rubygems_", "rubygems-token", Hex, 40, ANY),
    short("cio", "crates-token", Plain, 32, 32),
    short("oy2", "nuget-key", Plain, 43, 43),
    shape("dckr_pat_", "docker-token", Dashed, 20, ANY),
    shape("dckr_oat_", "docker-token", Dashed, 20, ANY),
    short("AKCp", "artifactory-key", Plain, 60, ANY),
    shape("cmVmdGtu", "artifactory-token", Plain, 50, ANY),
    shape("sqp_", "sonar-token", Hex, 40, 40),
    shape("squ_", "sonar-token", Hex, 40, 40),
    shape("sqa_", "sonar-token", Hex, 40, 40),
    shape("CCIPAT_", "circleci-token", Word, 30, ANY),
    // Services.
    shape("xoxb-", "slack-token", Dashed, 20, ANY),
    shape("xoxp-", "slack-token", Dashed, 20, ANY),
    shape("xoxa-", "slack-token", Dashed, 20, ANY),
    shape("xoxr-", "slack-token", Dashed, 20, ANY),
    shape("xoxs-", "slack-token", Dashed, 20, ANY),
    shape("xoxo-", "slack-token", Dashed, 20, ANY),
    shape("xoxc-", "slack-token", Dashed, 20, ANY),
    shape("xoxd-", "slack-token", Base64, 20, ANY),
    shape("xoxe-", "slack-token", Dashed, 20, ANY),
    shape("xoxe.xox", "slack-token", Dashed, 20, ANY),
    shape("xapp-", "slack-token", Dashed, 20, ANY),
    shape("sk_live_", "stripe-key", Plain, 16, ANY),
    shape("sk_test_", "stripe-key", Plain, 16, ANY),
    shape("rk_live_", "stripe-key", Plain, 16, ANY),
    shape("rk_test_", "stripe-key", Plain, 16, ANY),
    shape("whsec_", "webhook-secret", Base64, 24, ANY),
    shape("rzp_live_", "razorpay-key", Plain, 14, ANY),
    shape("sq0atp-", "square-token", Dashed, 20, ANY),
    shape("sq0csp-", "square-secret", Dashed, 30, ANY),
    short("EAAA", "square-token", Dashed, 56, 64),
    short("EAAC", "facebook-token", Plain, 60, ANY),
    short("EAAG", "facebook-token", Plain, 60, ANY),
    shape("FLWSECK-", "flutterwave-key", Dashed, 30, ANY),
    shape("FLWSECK_TEST-", "flutterwave-key", Dashed, 12, ANY),
    short("SK", "twilio-key", Hex, 32, 32),
    short("SG.", "sendgrid-key", Dotted, 40, ANY),
    shape("xkeysib-", "brevo-key", Dashed, 60, ANY),
    shape("xsmtpsib-", "brevo-key", Dashed, 60, ANY),
    short("key-", "mailgun-key", Hex, 32, 32),
    short("pubkey-", "mailgun-key", Hex, 64, 64),
    shape("re_", "resend-key", Word, 30, 40),
    shape("shpat_", "shopify-token", Hex, 32, ANY),
    shape("shpss_", "shopify-token", Hex, 32, ANY),
    shape("shpca_", "shopify-token", Hex, 32, ANY),
    shape("shppa_", "shopify-token", Hex, 32, ANY),
    shape("shpua_", "shopify-token", Hex, 32, ANY),
    shape("hvs.", "vault-token", Dashed, 20, ANY),
    shape("hvb.", "vault-token", Dashed, 20, ANY),
    shape("hvr.", "vault-token", Dashed, 20, ANY),
    shape("NRAK-", "newrelic-key", Upper, 27, 27),
    shape("NRJS-", "newrelic-key", Hex, 19, 19),
    shape("NRII-", "newrelic-key", Dashed, 32, 32),
    shape("glc_", "grafana-token", Base64, 30, ANY),
    shape("glsa_", "grafana-token", Word, 30, ANY),
    shape("eyJrIjoi", "grafana-token", Base64, 60, ANY),
    shape("sntrys_", "sentry-token", Base64, 30, ANY),
    shape("sntryu_", "sentry-token", Hex, 60, ANY),
    shape("lin_api_", "linear-key", Plain, 30, ANY),
    shape("lin_oauth_", "linear-key", Plain, 30, ANY),
    shape("secret_", "notion-key", Plain, 43, 43),
    short("ntn_", "notion-key", Plain, 40, ANY),
    shape("PMAK-", "postman-key", Dashed, 50, ANY),
    shape("dp.pt.", "doppler-token", Plain, 40, ANY),
    shape("dp.st.", "doppler-token", Dotted, 40, ANY),
    shape("dp.ct.", "doppler-token", Plain, 40, ANY),
    shape("figd_", "figma-token", Dashed, 38, ANY),
    shape("figu_", "figma-token", Dashed, 38, ANY),
    short("CFPAT-", "contentful-token", Dashed, 40, ANY),
    short("tfp_", "typeform-token", Dotted, 40, ANY),
    short("sk.eyJ", "mapbox-token", Dotted, 60, ANY),
    shape("phx_", "posthog-key", Plain, 40, ANY),
    shape("ops_eyJ", "onepassword-token", Base64, 100, ANY),
    shape("AGE-SECRET-KEY-1", "age-key", Upper, 50, ANY),
    shape("EZAK", "easypost-key", Plain, 54, ANY),
    shape("EZTK", "easypost-key", Plain, 54, ANY),
    shape("duffel_live_", "duffel-token", Dashed, 40, ANY),
    shape("shippo_live_", "shippo-token", Hex, 40, ANY),
    shape("sl.", "dropbox-token", Dashed, 100, ANY),
    shape("AQVN", "yandex-key", Dashed, 35, ANY),
    shape("y0_", "yandex-token", Dashed, 40, ANY),
    short("pat", "airtable-token", Dotted, 79, 79),
    shape("api_live.", "token", Dashed, 40, ANY),
    shape("BBDC-", "bitbucket-token", Base64, 40, ANY),
    shape("apify_api_", "apify-token", Plain, 30, ANY),
    shape("napi_", "neon-key", Plain, 60, ANY),
    shape("rnd_", "render-key", Plain, 28, ANY),
    shape("cfut_", "cloudflare-token", Word, 40, ANY),
    shape("infp_", "infracost-key", Plain, 32, ANY),
    shape("ico-", "infracost-key", Plain, 32, 32),
    shape("scw-", "scaleway-key", Dashed, 36, ANY),
    shape("SCW", "scaleway-key", Upper, 17, 17),
    shape("ubi-pat-", "token", Dashed, 30, ANY),
];

/// Returns the end of the token that starts at `at`, or `None` if there is no token.
pub(super) fn token_end(shape: &TokenShape, text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    if !bytes[at..].starts_with(shape.start.as_bytes()) {
        return None;
    }
    let before = at.checked_sub(1).map(|before| bytes[before]);
    if shape.apart && before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'-') && !is_escape(bytes, at) {
        return None;
    }
    let body = at + shape.start.len();
    let mut length = bytes[body..].iter().take_while(|byte| shape.letters.has(**byte)).count();
    // The full stop of a sentence is not part of the token.
    while length > 0 && matches!(bytes[body + length - 1], b'.' | b'-') && shape.letters != Letters::Hex {
        length -= 1;
    }
    if length < shape.least || length > shape.most {
        return None;
    }
    let token = &text[body..body + length];
    let drawn = match shape.letters {
        // Upper-case letters alone do not look like a word anyway.
        Letters::Upper | Letters::Hex => super::value::has_many_letters(token),
        _ => {
            super::value::is_random(token, shape.least.min(16))
                || (token.len() >= 24 && token.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        }
    };
    (drawn && !super::value::is_placeholder(token)).then_some(body + length)
}

/// Returns whether the bytes before `at` are an escape such as `\n` or `%3D` rather than part of a word.
pub(super) fn is_escape(bytes: &[u8], at: usize) -> bool {
    let back = |count: usize| at.checked_sub(count).map_or(0, |at| bytes[at]);
    (back(2) == b'\\' && matches!(back(1), b'n' | b'r' | b't'))
        || (back(3) == b'%' && back(2).is_ascii_hexdigit() && back(1).is_ascii_hexdigit())
}

/// Returns the end of a JSON Web Token. Such a token has three parts, or five if it is encrypted, and begins with a
/// Base64-encoded JSON object.
pub(super) fn web_token(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    if !bytes[at..].starts_with(b"eyJ")
        || at.checked_sub(1).is_some_and(|before| Letters::Plain.has(bytes[before])) && !is_escape(bytes, at)
    {
        return None;
    }
    let length = bytes[at..].iter().take_while(|byte| Letters::Dotted.has(**byte) || **byte == b'=').count();
    let token = text[at..at + length].trim_end_matches('.');
    let parts: Vec<&str> = token.split('.').collect();
    // A token that is cut after its second part counts as complete, because it contains the claims.
    let whole = parts.len() >= 2 && parts[0].len() >= 10 && parts[1].len() >= 10;
    whole.then_some(at + token.len())
}

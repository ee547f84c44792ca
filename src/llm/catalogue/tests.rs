use super::*;
use crate::protocol::Usage;

#[test]
fn the_built_in_list_parses_and_each_price_makes_sense() {
    let catalogue: Catalogue = toml::from_str(MODELS).unwrap();
    assert!(catalogue.models.len() >= 12);
    for card in &catalogue.models {
        assert!(
            card.name.split_once('/').is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty()),
            "{}",
            card.name
        );
        assert!(card.max_output_tokens.is_some_and(|limit| limit < card.context_window), "{}", card.name);
        if let Some(price) = card.price {
            assert!(
                price.cache_read < price.input && price.input <= price.cache_write && price.input < price.output,
                "{}",
                card.name
            );
        }
    }
    let unique: std::collections::BTreeSet<_> = super::catalogue().models.iter().map(|card| &card.name).collect();
    assert_eq!(unique.len(), catalogue.models.len());
}

#[test]
fn a_model_is_found_by_its_name_its_dated_name_and_under_the_compatible_provider() {
    for name in ["anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5-20250929"] {
        assert_eq!(facts(name).max_output_tokens, Some(64_000), "{name}");
    }
    for name in ["openai/gpt-4o", "openai-chat/gpt-4o", "openai/gpt-4o-2024-08-06"] {
        assert_eq!(facts(name).context_window, 128_000, "{name}");
    }
    for name in ["openai/gpt-4o-mini", "anthropic/gpt-4o", "mine/claude-sonnet-4-5", "x/y"] {
        let card = facts(name);
        assert_eq!((card.context_window, card.price, card.name.as_str()), (UNKNOWN_WINDOW, None, name));
    }
}

#[test]
fn cached_tokens_cost_what_they_cost() {
    let usage = Usage {
        input_tokens: 1_000_000,
        cache_read_tokens: 600_000,
        cache_write_tokens: 100_000,
        output_tokens: 10_000,
        reasoning_tokens: 0,
    };
    let cost = facts("anthropic/claude-haiku-4-5").cost_usd(&usage).unwrap();
    assert!((cost - (0.3 + 0.06 + 0.125 + 0.05)).abs() < 1e-9, "{cost}");
    assert_eq!(facts("x/y").cost_usd(&usage), None);
    assert_eq!(facts("local/qwen3-coder").cost_usd(&usage), Some(0.0), "a server of this machine");
}

#[test]
fn who_takes_images_is_known_by_the_list_or_by_the_family() {
    for (name, images) in [
        ("anthropic/claude-sonnet-5", true),
        ("anthropic/claude-next-9", true),
        ("gateway/claude-sonnet-5", true),
        ("openai-chat/gpt-5.5", true),
        ("local/Qwen3-VL:8b", true),
        ("openai/deepseek-flash", false),
        ("local/qwen3-coder", false),
        ("local/some-model", false),
    ] {
        assert_eq!(facts(name).images, images, "{name}");
    }
}

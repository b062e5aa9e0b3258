//! Tokens: whose a bearer token is, and the review that asks it.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::api::Api;
use crate::authn::User;
use crate::refusal::Outcome;
use crate::types::review;
use crate::value::{object, text};

/// Group and kind of the review of a token.
const REVIEW: (&str, &str) = ("authentication.k8s.io", "TokenReview");

impl Api {
    /// Whose a bearer token is.
    pub fn user_of(&self, token: &str) -> Option<User> {
        self.tokens.user(token).cloned()
    }

    /// Answers whose a token is. That it is nobody's is an answer too.
    pub async fn review_token(&self, review: &mut Value) -> Outcome<()> {
        let token = text(review, &["spec", "token"]).to_owned();
        if token.is_empty() {
            let fault = FieldError::required(FieldPath::new("spec").child("token"), "");
            return review::refuse(REVIEW.1, REVIEW.0, &[fault]);
        }
        let status = match self.user_of(&token) {
            Some(user) => json!({"authenticated": true, "user": review::told(&user)}),
            None => json!({"user": {}, "error": "the token is nobody's"}),
        };
        object(review).insert("status".to_owned(), status);
        Ok(())
    }
}

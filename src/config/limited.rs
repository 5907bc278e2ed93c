//! What may be used only where a quota counts it, as Kubernetes writes it (`limitedResources` of
//! `apiserver.config.k8s.io/v1 ResourceQuotaConfiguration`).

use serde::{Deserialize, Serialize};

use crate::model::{LimitedResource, Operator, Scope, ScopeTerm};

/// Something that needs a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Limited {
    pub api_group: String,
    pub resource: String,
    pub match_contains: Vec<String>,
    pub match_scopes: Vec<MatchScope>,
}

/// Objects that need a quota of a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct MatchScope {
    pub scope_name: String,
    pub operator: String,
    pub values: Vec<String>,
}

impl Limited {
    /// As admission takes it; where there are problems, without what they are about.
    pub fn read(&self) -> LimitedResource {
        let terms = self.match_scopes.iter();
        LimitedResource {
            resource: match self.api_group.as_str() {
                "" => self.resource.clone(),
                group => format!("{}.{group}", self.resource),
            },
            match_contains: self.match_contains.clone(),
            match_scopes: terms.filter_map(MatchScope::read).collect(),
        }
    }

    /// What is wrong with it, each with what would be right.
    pub fn problems(&self, path: &str) -> Vec<String> {
        let mut problems = Vec::new();
        if self.resource.is_empty() {
            problems.push(format!(
                "{path}.resource is missing: the plural of a kind such as pods is right"
            ));
        }
        if self.match_contains.is_empty() && self.match_scopes.is_empty() {
            problems.push(format!(
                "{path} limits nothing: matchContains (parts of quota keys such as requests.nvidia.com/gpu) or matchScopes is right"
            ));
        }
        if self.match_contains.iter().any(String::is_empty) {
            problems.push(format!(
                "{path}.matchContains has an empty text, which is in every key: a part of a key is right"
            ));
        }
        for (index, term) in self.match_scopes.iter().enumerate() {
            problems.extend(term.problems(&format!("{path}.matchScopes[{index}]")));
        }
        problems
    }
}

impl MatchScope {
    fn read(&self) -> Option<ScopeTerm> {
        Some(ScopeTerm {
            scope: Scope::from_name(&self.scope_name)?,
            operator: Operator::from_name(&self.operator)?,
            values: self.values.clone(),
        })
    }

    fn problems(&self, path: &str) -> Vec<String> {
        let one_of = |all: &[String]| all.join(", ");
        let Some(scope) = Scope::from_name(&self.scope_name) else {
            let all = one_of(&Scope::ALL.map(|scope| scope.to_string()));
            let name = &self.scope_name;
            return vec![format!(
                "{path}.scopeName is {name:?}: one of {all} is right"
            )];
        };
        let operator = Operator::from_name(&self.operator);
        let operator = operator.filter(|it| scope.has_values() || *it == Operator::Exists);
        let Some(operator) = operator else {
            let all = if scope.has_values() {
                one_of(&Operator::ALL.map(|operator| operator.to_string()))
            } else {
                Operator::Exists.to_string()
            };
            let name = &self.operator;
            return vec![format!(
                "{path}.operator is {name:?}: {all} is right for {scope}"
            )];
        };
        if operator.takes_values() == self.values.is_empty() {
            let right = if operator.takes_values() {
                "one or more are"
            } else {
                "none is"
            };
            let number = self.values.len();
            return vec![format!(
                "{path} has {number} values: {right} right for {operator}"
            )];
        }
        Vec::new()
    }
}

//! Arguments that several commands have alike: which objects, or whose.
//!
//! Decides what the words choose, never what is done with it.

use super::error::CliError;
use super::{Context, pod_name};

/// Objects by kind and name.
#[derive(Clone, Debug, clap::Args)]
pub struct Objects {
    /// pods, nodes, events, quota, limits, configmaps …; several with commas; all: what runs or serves
    #[arg(value_name = "KIND")]
    pub kinds: String,
    /// Names; a pod's may be NAMESPACE/NAME. None: all
    pub names: Vec<String>,
    /// Objects of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
}

impl Objects {
    /// The namespace to list; none for all.
    pub fn namespace<'a>(&self, context: &'a Context) -> Option<&'a str> {
        (!self.all_namespaces).then(|| context.namespace())
    }
}

/// Records about one pod, or about all pods of a namespace or of all.
#[derive(Clone, Debug, clap::Args)]
pub struct OfPod {
    /// Only those about this pod
    #[arg(value_name = "[NAMESPACE/]POD")]
    pub pod: Option<String>,
    /// Those of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
}

impl OfPod {
    /// The namespace and the pod, as far as they are chosen.
    ///
    /// # Errors
    /// A text that is no pod.
    pub fn chosen<'a>(
        &'a self,
        context: &'a Context,
    ) -> Result<(Option<&'a str>, Option<&'a str>), CliError> {
        let pod = self.pod.as_deref().map(|text| pod_name(text, context));
        Ok(match pod.transpose()? {
            Some((namespace, name)) => (Some(namespace), Some(name)),
            None if self.all_namespaces => (None, None),
            None => (Some(context.namespace()), None),
        })
    }
}

// Package operator owns the operator's own error rules and defaults (RUL-30 to RUL-44): their two documents, what is wrong
// with one, and the verdict that they give. It is pure: it reads documents and failed answers, and changes nothing.
package operator

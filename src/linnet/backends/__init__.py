"""What the backends share: names in generated code, numbers known while generating, entries'
signatures and the checks on their inputs, the table of native implementations."""

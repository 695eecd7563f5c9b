"""What a policy has to remember of its prompt, and whether it still does when prompts are longer than in training.

A prompt is read, one question is asked, and the answer is judged. How much has to be remembered is known exactly, and
so is what each shortcut is worth. Training may see short prompts alone (`trained`); scores are of long ones. Which
architecture a policy needs for what it has learnt on short contexts to hold on long ones is what these settings tell.
"""
